"""CX1, LT11: the parts of a context, their order, and how a context that is too long is shortened."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.context import assemble, blocks, tokens
from shared.context.request import Request
from shared.context.types import Block, BlockKind, ContextInputs
from shared.conversation.turns.turn import Turn
from shared.foundation.roles import Role
from tests.unit.context import builders

SHORT_SUMMARY = f"{blocks.SUMMARY}\n<memory-data>\n  in short\n</memory-data>"
SYSTEM, MESSAGE = "You are helpful.", "what now?"
OTHERS = (BlockKind.PAST_TURNS, BlockKind.WORKING_MEMORY, BlockKind.PATROL, BlockKind.SUBAGENTS)
FACTS, EPISODES = ["0a", "0b", "0c", "0d"], ["e0", "e1"]
IDS = [*FACTS, *EPISODES]


def request_for(max_tokens: int | None = None, system: str | None = SYSTEM) -> Request:
    return Request(MESSAGE, system, max_tokens=max_tokens)


@st.composite
def drawn_inputs(draw: st.DrawFn) -> ContextInputs:
    """Draw turns with recalled lines, earlier recalls that may match them or not, and new recalls."""
    roles = st.sampled_from([Role.USER, Role.ASSISTANT, Role.SYSTEM])
    ids = st.lists(st.sampled_from(IDS), unique=True)
    count = draw(st.integers(0, 5))
    turns = [
        builders.turn(seq, draw(st.text("xy ", max_size=40)), draw(roles), draw(ids))
        for seq in range(1, count + 1)
    ]
    if draw(st.booleans()):
        turns.insert(draw(st.integers(0, count)), builders.turn(99, "in short", Role.SUMMARY))
    earlier_recall = st.tuples(st.integers(1, 2), st.integers(0, 6))
    results = [builders.result(memory_id, content_version=draw(st.integers(1, 2))) for memory_id in draw(ids)]
    memories = [result for result in results if result.memory.id in FACTS]
    episodes = [result for result in results if result.memory.id in EPISODES]
    other_blocks = [
        builders.block(kind, *draw(st.lists(st.text("ab", min_size=1, max_size=20), min_size=1, max_size=3)))
        for kind in OTHERS
        if draw(st.booleans())
    ]
    recalled_before = draw(st.dictionaries(st.sampled_from(IDS), earlier_recall))
    return builders.context_inputs(
        turns, memories, other_blocks, recalled_before=recalled_before, episodes=episodes
    )


def count_lines(messages: Sequence[dict[str, str]], memory_id: str) -> int:
    return sum(m["content"].count(f"\n- [{memory_id}] ") for m in messages if m["role"] == "system")


@given(drawn_inputs(), st.one_of(st.none(), st.integers(0, 200)))
def test_a_memory_is_in_the_messages_at_most_once(inputs: ContextInputs, limit: int | None) -> None:
    built = assemble.assemble(inputs, request_for(limit))
    assert all(count_lines(built.messages, memory_id) <= 1 for memory_id in IDS)


@given(drawn_inputs())
def test_every_recalled_memory_is_in_the_messages_once_and_is_new_or_withheld(
    inputs: ContextInputs,
) -> None:
    built = assemble.assemble(inputs, request_for())
    new_ids = [result.memory.id for result in built.new_memories]
    assert sorted([*new_ids, *built.withheld]) == sorted(result.memory.id for result in inputs.results)
    assert all(count_lines(built.messages, result.memory.id) == 1 for result in inputs.results)
    assert [line.id for line in built.lines] == new_ids


@given(drawn_inputs())
def test_a_withheld_memory_is_replayed_in_the_version_that_was_recalled(inputs: ContextInputs) -> None:
    withheld = assemble.assemble(inputs, request_for()).withheld
    versions = {result.memory.id: result.memory.content_version for result in inputs.results}
    seqs = {turn.seq for turn in inputs.turns if turn.role is not Role.SUMMARY}
    assert all(
        inputs.recalled_before[memory_id][0] == versions[memory_id]
        and inputs.recalled_before[memory_id][1] in seqs
        for memory_id in withheld
    )


@given(drawn_inputs(), st.one_of(st.none(), st.just(SYSTEM)))
def test_cx1_messages_are_in_the_documented_order(inputs: ContextInputs, system: str | None) -> None:
    built = assemble.assemble(inputs, request_for(system=system))
    contents = [message["content"] for message in built.messages]
    turns = [turn.content for turn in inputs.turns if turn.role is not Role.SUMMARY]
    summaries = [SHORT_SUMMARY] if len(turns) < len(inputs.turns) else []
    shown_blocks = [blocks.text(block) for block in built.blocks]
    replayed_texts = contents[
        len([system] if system else []) + len(summaries) : len(contents) - len(shown_blocks) - 1
    ]
    assert contents[: len(contents) - len(shown_blocks) - 1 - len(replayed_texts)] == [
        *([system] if system else []),
        *summaries,
    ]
    assert [
        text for text in replayed_texts if not text.startswith((blocks.RECALLED, blocks.EPISODES))
    ] == turns
    assert contents[-len(shown_blocks) - 1 :] == [*shown_blocks, MESSAGE]
    assert built.messages[-1] == {"role": "user", "content": MESSAGE}
    kinds = [block.kind for block in built.blocks]
    assert kinds == sorted(kinds, key=list(BlockKind).index)


def test_a_replayed_block_is_right_before_its_turn() -> None:
    inputs = builders.context_inputs(
        [builders.turn(1, "first", recalled=["0a"]), builders.turn(2, "reply", Role.ASSISTANT)]
    )
    contents = [message["content"] for message in assemble.assemble(inputs, request_for()).messages]
    assert contents[1].startswith(blocks.RECALLED)
    assert "- [0a] " in contents[1]
    assert contents[2:] == ["first", "reply", MESSAGE]


@given(drawn_inputs())
def test_only_episodes_are_under_the_header_of_episodes(inputs: ContextInputs) -> None:
    """DR12: this holds for new memories and for those replayed with their turn."""
    for message in assemble.assemble(inputs, request_for()).messages:
        shown_ids = [memory_id for memory_id in IDS if count_lines([message], memory_id)]
        if shown_ids:
            header = blocks.EPISODES if shown_ids[0] in EPISODES else blocks.RECALLED
            assert message["content"].startswith(header)
            assert {memory_id in EPISODES for memory_id in shown_ids} == {shown_ids[0] in EPISODES}


def test_episodes_are_right_after_recalled_memories_and_before_past_turns() -> None:
    other_blocks = [builders.block(BlockKind.PAST_TURNS, "x")]
    inputs = builders.context_inputs(
        [], [builders.result("0a")], other_blocks, episodes=[builders.result("e0")]
    )
    kinds = [block.kind for block in assemble.assemble(inputs, request_for()).blocks]
    assert kinds == [BlockKind.RECALLED, BlockKind.EPISODES, BlockKind.PAST_TURNS]


def test_a_turn_is_replayed_with_both_its_blocks() -> None:
    inputs = builders.context_inputs([builders.turn(1, "first", recalled=["e0", "0a"])])
    contents = [message["content"] for message in assemble.assemble(inputs, request_for()).messages]
    assert [text.splitlines()[0] for text in contents[1:3]] == [blocks.RECALLED, blocks.EPISODES]
    assert contents[3:] == ["first", MESSAGE]


def test_a_memory_whose_turn_has_left_the_window_is_shown_again() -> None:
    inputs = builders.context_inputs(
        [builders.turn(7)], [builders.result("0a")], recalled_before={"0a": (1, 3)}
    )
    built = assemble.assemble(inputs, request_for())
    assert [result.memory.id for result in built.new_memories] == ["0a"]
    assert built.withheld == []


def test_a_memory_that_changed_is_shown_again_and_removed_from_its_older_turn() -> None:
    inputs = builders.context_inputs(
        [builders.turn(1, recalled=["0a", "0b"])], [builders.result("0a", "edited", 2)]
    )
    messages = assemble.assemble(inputs, request_for()).messages
    assert "- [0a] " not in messages[1]["content"]
    assert "- [0b] " in messages[1]["content"]
    assert "- [0a] (general): edited" in messages[3]["content"]


def test_a_memory_that_was_deleted_is_no_longer_replayed() -> None:
    """LT13: deleting a memory deletes the record of its recalls; a stale window must not show it."""
    inputs = builders.context_inputs([builders.turn(1, recalled=["0a"])], recalled_before={})
    assert [m["content"] for m in assemble.assemble(inputs, request_for()).messages] == [
        SYSTEM,
        "turn 1",
        MESSAGE,
    ]


def test_a_reinforced_memory_counts_as_unchanged() -> None:
    reinforced = builders.entry("0a").model_copy(update={"reinforcement_count": 9, "version": 4})
    result = replace(builders.result("0a"), memory=reinforced)
    built = assemble.assemble(
        builders.context_inputs([builders.turn(1, recalled=["0a"])], [result]), request_for()
    )
    assert (built.new_memories, built.withheld) == ([], ["0a"])


def full_inputs() -> ContextInputs:
    """Return inputs with two lines or turns of every part that can be shortened."""
    turns = [
        builders.turn(9, "in short", Role.SUMMARY),
        builders.turn(1, "one " * 20),
        builders.turn(2, "two " * 20),
    ]
    other_blocks = [builders.block(kind, f"{kind} first " * 5, f"{kind} second " * 5) for kind in OTHERS]
    facts, episodes = (
        [builders.result(first, f"{first} alpha " * 9), builders.result(second, f"{second} beta " * 9)]
        for first, second in (("0a", "0b"), ("e0", "e1"))
    )
    return builders.context_inputs(turns, facts, other_blocks, episodes=episodes)


def shortening_steps(inputs: ContextInputs) -> list[tuple[int, dict[str, int]]]:
    """Lower the budget until nothing more is removed; return the tokens and part sizes of each context."""
    contexts: list[tuple[int, dict[str, int]]] = []
    budget = assemble.assemble(inputs, request_for()).tokens
    while True:
        built = assemble.assemble(inputs, request_for(budget))
        contexts.append((built.tokens, part_sizes(built.blocks, built.messages)))
        if built.tokens > budget:
            return contexts[:-1]
        budget = built.tokens - 1


def part_sizes(shown_blocks: Sequence[Block], messages: Sequence[dict[str, str]]) -> dict[str, int]:
    lines = {str(block.kind): len(block.lines) for block in shown_blocks}
    return lines | {"turns": sum(m["role"] == "user" for m in messages) - 1}


def test_max_tokens_shortens_past_turns_then_episodes_then_inventories_then_oldest_turns_then_recalled() -> (
    None
):
    """CX1: it removes one line or turn at a time, the last line and the oldest turn first."""
    order = ["past_turns", "episodes", "subagents", "patrol", "working_memory", "turns", "recalled"]
    expected = dict.fromkeys(order, 2)
    sizes_by_step = [dict(sizes) for _, sizes in shortening_steps(full_inputs())]
    assert sizes_by_step[0] == expected
    for kind in order:
        for remaining in (1, 0):
            sizes_by_step.pop(0)
            expected = {**expected, kind: remaining}
            assert sizes_by_step[0] == {
                name: size for name, size in expected.items() if size or name == "turns"
            }
    assert sizes_by_step[1:] == []


def test_the_oldest_turn_is_removed_first_and_the_first_line_of_a_block_last() -> None:
    built = assemble.assemble(full_inputs(), request_for(shortening_steps(full_inputs())[11][0]))
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
    shortest = assemble.assemble(full_inputs(), request_for(shortening_steps(full_inputs())[13][0]))
    assert [result.memory.id for result in shortest.new_memories] == ["0a"]


def test_a_recalled_memory_that_did_not_fit_is_not_recorded_as_shown() -> None:
    built = assemble.assemble(full_inputs(), request_for(0))
    assert (built.new_memories, built.lines, built.blocks) == ([], (), [])


@given(drawn_inputs(), st.integers(0, 300))
def test_the_budget_is_kept_and_no_more_is_removed_than_needed(inputs: ContextInputs, limit: int) -> None:
    built = assemble.assemble(inputs, request_for(limit))
    sizes = [
        assemble._assemble(shortened_inputs, shortened_parts, request_for()).tokens
        for shortened_inputs, shortened_parts in assemble._shorten_step_by_step(inputs)
    ]
    assert built.tokens == next((size for size in sizes if size <= limit), sizes[-1])
    assert (built.shortened == []) == (sizes[0] <= limit or len(sizes) == 1)


@given(drawn_inputs(), st.integers(0, 300))
def test_the_message_the_system_text_and_the_summary_are_never_shortened(
    inputs: ContextInputs, limit: int
) -> None:
    contents = [message["content"] for message in assemble.assemble(inputs, request_for(limit)).messages]
    assert contents[0] == SYSTEM
    assert contents[-1] == MESSAGE
    has_summary = any(turn.role is Role.SUMMARY for turn in inputs.turns)
    assert (SHORT_SUMMARY in contents) == has_summary


def test_a_message_over_the_budget_is_still_sent_in_full() -> None:
    built = assemble.assemble(full_inputs(), Request("x" * 4000, SYSTEM, max_tokens=10))
    assert [m["content"] for m in built.messages][-1] == "x" * 4000
    assert built.tokens > 1000


def test_a_context_without_inputs_is_the_message_alone() -> None:
    built = assemble.assemble(ContextInputs(), Request("hello"))
    assert built.messages == [{"role": "user", "content": "hello"}]
    assert (built.blocks, built.shortened, built.tokens) == ([], [], 2 + 4)


@given(drawn_inputs())
def test_the_token_count_is_that_of_the_messages(inputs: ContextInputs) -> None:
    built = assemble.assemble(inputs, request_for())
    assert built.tokens == tokens.of_messages(built.messages)


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("abcd", 1), ("abcde", 2), ("Привет", 3), ("日本語", 3), ("👍", 1)]
)
def test_tokens_are_a_quarter_of_the_utf_8_bytes_rounded_up(text: str, count: int) -> None:
    """CX3: this is the documented rule."""
    assert tokens.of_text(text) == count
    assert tokens.of_messages([{"role": "user", "content": text}] * 2) == 2 * (count + 4)


def test_only_the_last_of_several_summaries_is_shown() -> None:
    turns: list[Turn] = [
        builders.turn(1, "old", Role.SUMMARY),
        builders.turn(2, "new", Role.SUMMARY),
        builders.turn(3),
    ]
    contents = [
        message["content"]
        for message in assemble.assemble(builders.context_inputs(turns), request_for()).messages
    ]
    assert contents == [SYSTEM, f"{blocks.SUMMARY}\n<memory-data>\n  new\n</memory-data>", "turn 3", MESSAGE]
