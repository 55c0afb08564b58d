"""CX1, LT11: what a context is made of, in which order, and what gives way when it is too long."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.context import assemble, blocks, tokens
from shared.context.types import Block, BlockKind, ContextInputs, Request
from shared.conversation.turns.turn import Turn
from shared.foundation.roles import Role
from tests.unit.context import builders

SYSTEM, MESSAGE = "You are helpful.", "what now?"
OTHERS = (BlockKind.PAST_TURNS, BlockKind.WORKING_MEMORY, BlockKind.PATROL, BlockKind.SUBAGENTS)
FACTS, EPISODES = ["0a", "0b", "0c", "0d"], ["e0", "e1"]
IDS = [*FACTS, *EPISODES]


def request_for(max_tokens: int | None = None, system: str | None = SYSTEM) -> Request:
    return Request(MESSAGE, system, max_tokens=max_tokens)


@st.composite
def context_inputs(draw: st.DrawFn) -> ContextInputs:
    """Draw anything that may have been read: turns with lines, marks that fit or not, and recalls."""
    roles = st.sampled_from([Role.USER, Role.ASSISTANT, Role.SYSTEM])
    ids = st.lists(st.sampled_from(IDS), unique=True)
    count = draw(st.integers(0, 5))
    turns = [
        builders.turn(seq, draw(st.text("xy ", max_size=40)), draw(roles), draw(ids))
        for seq in range(1, count + 1)
    ]
    if draw(st.booleans()):
        turns.insert(draw(st.integers(0, count)), builders.turn(99, "in short", Role.SUMMARY))
    mark = st.tuples(st.integers(1, 2), st.integers(0, 6))
    inputs = [builders.result(item, content_version=draw(st.integers(1, 2))) for item in draw(ids)]
    recalled = [item for item in inputs if item.memory.id in FACTS]
    episodes = [item for item in inputs if item.memory.id in EPISODES]
    others = [
        builders.block(kind, *draw(st.lists(st.text("ab", min_size=1, max_size=20), min_size=1, max_size=3)))
        for kind in OTHERS
        if draw(st.booleans())
    ]
    marks = draw(st.dictionaries(st.sampled_from(IDS), mark))
    return builders.gathered(turns, recalled, others, recalled_before=marks, episodes=episodes)


def lines_of(messages: Sequence[dict[str, str]], entry_id: str) -> int:
    return sum(m["content"].count(f"\n- [{entry_id}] ") for m in messages if m["role"] == "system")


@given(context_inputs(), st.one_of(st.none(), st.integers(0, 200)))
def test_a_memory_is_in_messages_at_most_once_whatever_was_shown_before(
    inputs: ContextInputs, limit: int | None
) -> None:
    built = assemble.assemble(inputs, request_for(limit))
    assert all(lines_of(built.messages, item) <= 1 for item in IDS)


@given(context_inputs())
def test_every_recalled_memory_is_in_messages_exactly_once_and_is_new_or_withheld(
    inputs: ContextInputs,
) -> None:
    built = assemble.assemble(inputs, request_for())
    new = [item.memory.id for item in built.new_memories]
    assert sorted([*new, *built.withheld]) == sorted(item.memory.id for item in inputs.found)
    assert all(lines_of(built.messages, item.memory.id) == 1 for item in inputs.found)
    assert [line.id for line in built.lines] == new


@given(context_inputs())
def test_what_is_withheld_is_replayed_in_the_version_that_was_recalled(inputs: ContextInputs) -> None:
    withheld = assemble.assemble(inputs, request_for()).withheld
    versions = {item.memory.id: item.memory.content_version for item in inputs.found}
    seqs = {turn.seq for turn in inputs.turns if turn.role is not Role.SUMMARY}
    assert all(
        inputs.recalled_before[item][0] == versions[item] and inputs.recalled_before[item][1] in seqs
        for item in withheld
    )


@given(context_inputs(), st.one_of(st.none(), st.just(SYSTEM)))
def test_cx1_messages_are_in_the_documented_order(inputs: ContextInputs, system: str | None) -> None:
    built = assemble.assemble(inputs, request_for(system=system))
    contents = [message["content"] for message in built.messages]
    turns = [turn.content for turn in inputs.turns if turn.role is not Role.SUMMARY]
    summaries = [f"{blocks.SUMMARY}\nin short"] if len(turns) < len(inputs.turns) else []
    shown_blocks = [blocks.text(block) for block in built.blocks]
    replayed = contents[
        len([system] if system else []) + len(summaries) : len(contents) - len(shown_blocks) - 1
    ]
    assert contents[: len(contents) - len(shown_blocks) - 1 - len(replayed)] == [
        *([system] if system else []),
        *summaries,
    ]
    assert [text for text in replayed if not text.startswith((blocks.RECALLED, blocks.EPISODES))] == turns
    assert contents[-len(shown_blocks) - 1 :] == [*shown_blocks, MESSAGE]
    assert built.messages[-1] == {"role": "user", "content": MESSAGE}
    kinds = [block.kind for block in built.blocks]
    assert kinds == sorted(kinds, key=list(BlockKind).index)


def test_a_replayed_block_is_right_before_its_turn() -> None:
    inputs = builders.gathered(
        [builders.turn(1, "first", recalled=["0a"]), builders.turn(2, "reply", Role.ASSISTANT)]
    )
    contents = [message["content"] for message in assemble.assemble(inputs, request_for()).messages]
    assert contents[1].startswith(blocks.RECALLED)
    assert "- [0a] " in contents[1]
    assert contents[2:] == ["first", "reply", MESSAGE]


@given(context_inputs())
def test_only_episodes_are_under_the_header_of_episodes(inputs: ContextInputs) -> None:
    """DR12: when it is new as when its turn is replayed."""
    for message in assemble.assemble(inputs, request_for()).messages:
        shown_ids = [item for item in IDS if lines_of([message], item)]
        if shown_ids:
            header = blocks.EPISODES if shown_ids[0] in EPISODES else blocks.RECALLED
            assert message["content"].startswith(header)
            assert {item in EPISODES for item in shown_ids} == {shown_ids[0] in EPISODES}


def test_episodes_are_right_after_recalled_memories_and_before_past_turns() -> None:
    others = [builders.block(BlockKind.PAST_TURNS, "x")]
    inputs = builders.gathered([], [builders.result("0a")], others, episodes=[builders.result("e0")])
    kinds = [block.kind for block in assemble.assemble(inputs, request_for()).blocks]
    assert kinds == [BlockKind.RECALLED, BlockKind.EPISODES, BlockKind.PAST_TURNS]


def test_a_turn_is_replayed_with_both_its_blocks() -> None:
    inputs = builders.gathered([builders.turn(1, "first", recalled=["e0", "0a"])])
    contents = [message["content"] for message in assemble.assemble(inputs, request_for()).messages]
    assert [text.splitlines()[0] for text in contents[1:3]] == [blocks.RECALLED, blocks.EPISODES]
    assert contents[3:] == ["first", MESSAGE]


def test_a_line_whose_turn_has_left_the_window_is_shown_again() -> None:
    inputs = builders.gathered([builders.turn(7)], [builders.result("0a")], recalled_before={"0a": (1, 3)})
    built = assemble.assemble(inputs, request_for())
    assert [item.memory.id for item in built.new_memories] == ["0a"]
    assert built.withheld == []


def test_a_memory_that_changed_is_shown_again_and_removed_from_its_older_turn() -> None:
    inputs = builders.gathered(
        [builders.turn(1, recalled=["0a", "0b"])], [builders.result("0a", "edited", 2)]
    )
    messages = assemble.assemble(inputs, request_for()).messages
    assert "- [0a] " not in messages[1]["content"]
    assert "- [0b] " in messages[1]["content"]
    assert "- [0a] (general): edited" in messages[3]["content"]


def test_a_memory_that_was_deleted_is_no_longer_replayed() -> None:
    """LT13: forgetting an entry deletes its marks; a stale window must not show it."""
    inputs = builders.gathered([builders.turn(1, recalled=["0a"])], recalled_before={})
    assert [m["content"] for m in assemble.assemble(inputs, request_for()).messages] == [
        SYSTEM,
        "turn 1",
        MESSAGE,
    ]


def test_a_reinforced_memory_counts_as_unchanged() -> None:
    seen_again = builders.entry("0a").model_copy(update={"reinforcement_count": 9, "version": 4})
    recalled = replace(builders.result("0a"), memory=seen_again)
    built = assemble.assemble(
        builders.gathered([builders.turn(1, recalled=["0a"])], [recalled]), request_for()
    )
    assert (built.new_memories, built.withheld) == ([], ["0a"])


def full() -> ContextInputs:
    """Return something of everything that may give way."""
    turns = [
        builders.turn(9, "in short", Role.SUMMARY),
        builders.turn(1, "one " * 20),
        builders.turn(2, "two " * 20),
    ]
    others = [builders.block(kind, f"{kind} first " * 5, f"{kind} second " * 5) for kind in OTHERS]
    facts, episodes = (
        [builders.result(item, f"{item} alpha " * 9), builders.result(other, f"{other} beta " * 9)]
        for item, other in (("0a", "0b"), ("e0", "e1"))
    )
    return builders.gathered(turns, facts, others, episodes=episodes)


def steps(inputs: ContextInputs) -> list[tuple[int, dict[str, int]]]:
    """Return every different context that lower and lower budgets give, with its tokens."""
    seen: list[tuple[int, dict[str, int]]] = []
    budget = assemble.assemble(inputs, request_for()).tokens
    while True:
        built = assemble.assemble(inputs, request_for(budget))
        seen.append((built.tokens, standing(built.blocks, built.messages)))
        if built.tokens > budget:
            return seen[:-1]
        budget = built.tokens - 1


def standing(shown_blocks: Sequence[Block], messages: Sequence[dict[str, str]]) -> dict[str, int]:
    lines = {str(block.kind): len(block.lines) for block in shown_blocks}
    return lines | {"turns": sum(m["role"] == "user" for m in messages) - 1}


def test_max_tokens_shortens_past_turns_then_episodes_then_inventories_then_oldest_turns_then_recalled() -> (
    None
):
    """CX1: one line or turn at a time, the last line and the oldest turn first."""
    order = ["past_turns", "episodes", "subagents", "patrol", "working_memory", "turns", "recalled"]
    expected = dict.fromkeys(order, 2)
    inputs = [dict(stood) for _, stood in steps(full())]
    assert inputs[0] == expected
    for kind in order:
        for remaining in (1, 0):
            inputs.pop(0)
            expected = {**expected, kind: remaining}
            assert inputs[0] == {name: n for name, n in expected.items() if n or name == "turns"}
    assert inputs[1:] == []


def test_the_oldest_turn_is_removed_first_and_the_first_line_of_a_block_last() -> None:
    built = assemble.assemble(full(), request_for(steps(full())[11][0]))
    contents = [message["content"] for message in built.messages]
    assert "one " * 20 not in contents
    assert "two " * 20 in contents
    assert built.shortened == [
        "past_turns",
        "episodes",
        "subagents",
        "patrol",
        "working_memory",
        "turns",
    ]
    last = assemble.assemble(full(), request_for(steps(full())[13][0]))
    assert [item.memory.id for item in last.new_memories] == ["0a"]


def test_a_recalled_memory_that_did_not_fit_is_not_recorded_as_shown() -> None:
    built = assemble.assemble(full(), request_for(0))
    assert (built.new_memories, built.lines, built.blocks) == ([], (), [])


@given(context_inputs(), st.integers(0, 300))
def test_a_budget_is_kept_and_nothing_is_removed_that_would_have_fitted(
    inputs: ContextInputs, limit: int
) -> None:
    built = assemble.assemble(inputs, request_for(limit))
    sizes = [
        assemble._assemble(less, cut, request_for()).tokens
        for less, cut in assemble._shorten_step_by_step(inputs)
    ]
    assert built.tokens == next((size for size in sizes if size <= limit), sizes[-1])
    assert (built.shortened == []) == (sizes[0] <= limit or len(sizes) == 1)


@given(context_inputs(), st.integers(0, 300))
def test_the_message_the_system_text_and_the_summary_are_never_shortened(
    inputs: ContextInputs, limit: int
) -> None:
    contents = [message["content"] for message in assemble.assemble(inputs, request_for(limit)).messages]
    assert contents[0] == SYSTEM
    assert contents[-1] == MESSAGE
    summarised = any(turn.role is Role.SUMMARY for turn in inputs.turns)
    assert (f"{blocks.SUMMARY}\nin short" in contents) == summarised


def test_a_message_over_the_budget_is_sent_all_the_same() -> None:
    built = assemble.assemble(full(), Request("x" * 4000, SYSTEM, max_tokens=10))
    assert [m["content"] for m in built.messages][-1] == "x" * 4000
    assert built.tokens > 1000


def test_a_message_without_any_inputs_is_a_context() -> None:
    built = assemble.assemble(ContextInputs(), Request("hello"))
    assert built.messages == [{"role": "user", "content": "hello"}]
    assert (built.blocks, built.shortened, built.tokens) == ([], [], 2 + 4)


@given(context_inputs())
def test_tokens_are_those_of_the_messages(inputs: ContextInputs) -> None:
    built = assemble.assemble(inputs, request_for())
    assert built.tokens == tokens.of_messages(built.messages)


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("abcd", 1), ("abcde", 2), ("Привет", 3), ("日本語", 3), ("👍", 1)]
)
def test_a_token_is_four_bytes_of_utf_8_rounded_up(text: str, count: int) -> None:
    """CX3: the stated rule."""
    assert tokens.of_text(text) == count
    assert tokens.of_messages([{"role": "user", "content": text}] * 2) == 2 * (count + 4)


def test_only_the_last_of_several_summaries_is_shown() -> None:
    turns: list[Turn] = [
        builders.turn(1, "old", Role.SUMMARY),
        builders.turn(2, "new", Role.SUMMARY),
        builders.turn(3),
    ]
    contents = [
        message["content"] for message in assemble.assemble(builders.gathered(turns), request_for()).messages
    ]
    assert contents == [SYSTEM, f"{blocks.SUMMARY}\nnew", "turn 3", MESSAGE]
