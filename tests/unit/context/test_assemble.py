"""CX1, LT11: what a context is made of, in which order, and what gives way when it is too long."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from shared.context import assemble, blocks, tokens
from shared.context.types import Block, BlockKind, ContextInputs, Request
from shared.conversation.turns.turn import Turn
from shared.foundation.roles import Role
from tests.unit.context import made

SYSTEM, MESSAGE = "You are helpful.", "what now?"
OTHERS = (BlockKind.PAST_TURNS, BlockKind.WORKING_MEMORY, BlockKind.PATROL, BlockKind.SUBAGENTS)
FACTS, EPISODES = ["0a", "0b", "0c", "0d"], ["e0", "e1"]
IDS = [*FACTS, *EPISODES]


def asked(max_tokens: int | None = None, system: str | None = SYSTEM) -> Request:
    return Request(MESSAGE, system, max_tokens=max_tokens)


@some.composite
def read(draw: some.DrawFn) -> ContextInputs:
    """Draw anything that may have been read: turns with lines, marks that fit or not, and recalls."""
    roles = some.sampled_from([Role.USER, Role.ASSISTANT, Role.SYSTEM])
    ids = some.lists(some.sampled_from(IDS), unique=True)
    count = draw(some.integers(0, 5))
    turns = [
        made.turn(seq, draw(some.text("xy ", max_size=40)), draw(roles), draw(ids))
        for seq in range(1, count + 1)
    ]
    if draw(some.booleans()):
        turns.insert(draw(some.integers(0, count)), made.turn(99, "in short", Role.SUMMARY))
    mark = some.tuples(some.integers(1, 2), some.integers(0, 6))
    found = [made.result(one, content_version=draw(some.integers(1, 2))) for one in draw(ids)]
    recalled = [one for one in found if one.memory.id in FACTS]
    episodes = [one for one in found if one.memory.id in EPISODES]
    others = [
        made.block(kind, *draw(some.lists(some.text("ab", min_size=1, max_size=20), min_size=1, max_size=3)))
        for kind in OTHERS
        if draw(some.booleans())
    ]
    marks = draw(some.dictionaries(some.sampled_from(IDS), mark))
    return made.gathered(turns, recalled, others, recalled_before=marks, episodes=episodes)


def lines_of(messages: Sequence[dict[str, str]], entry_id: str) -> int:
    return sum(m["content"].count(f"\n- [{entry_id}] ") for m in messages if m["role"] == "system")


@given(read(), some.one_of(some.none(), some.integers(0, 200)))
def test_a_memory_is_in_messages_at_most_once_whatever_was_shown_before(
    found: ContextInputs, limit: int | None
) -> None:
    shaped = assemble.assemble(found, asked(limit))
    assert all(lines_of(shaped.messages, one) <= 1 for one in IDS)


@given(read())
def test_every_recalled_memory_is_in_messages_exactly_once_and_is_new_or_withheld(
    found: ContextInputs,
) -> None:
    shaped = assemble.assemble(found, asked())
    new = [one.memory.id for one in shaped.new_memories]
    assert sorted([*new, *shaped.withheld]) == sorted(one.memory.id for one in found.found)
    assert all(lines_of(shaped.messages, one.memory.id) == 1 for one in found.found)
    assert [line.id for line in shaped.lines] == new


@given(read())
def test_what_is_withheld_is_replayed_in_the_version_that_was_recalled(found: ContextInputs) -> None:
    withheld = assemble.assemble(found, asked()).withheld
    versions = {one.memory.id: one.memory.content_version for one in found.found}
    seqs = {turn.seq for turn in found.turns if turn.role is not Role.SUMMARY}
    assert all(
        found.recalled_before[one][0] == versions[one] and found.recalled_before[one][1] in seqs
        for one in withheld
    )


@given(read(), some.one_of(some.none(), some.just(SYSTEM)))
def test_cx1_messages_are_in_the_documented_order(found: ContextInputs, system: str | None) -> None:
    shaped = assemble.assemble(found, asked(system=system))
    said = [message["content"] for message in shaped.messages]
    turns = [turn.content for turn in found.turns if turn.role is not Role.SUMMARY]
    summaries = [f"{blocks.SUMMARY}\nin short"] if len(turns) < len(found.turns) else []
    headed = [blocks.text(block) for block in shaped.blocks]
    replayed = said[len([system] if system else []) + len(summaries) : len(said) - len(headed) - 1]
    assert said[: len(said) - len(headed) - 1 - len(replayed)] == [*([system] if system else []), *summaries]
    assert [text for text in replayed if not text.startswith((blocks.RECALLED, blocks.EPISODES))] == turns
    assert said[-len(headed) - 1 :] == [*headed, MESSAGE]
    assert shaped.messages[-1] == {"role": "user", "content": MESSAGE}
    kinds = [block.kind for block in shaped.blocks]
    assert kinds == sorted(kinds, key=list(BlockKind).index)


def test_a_replayed_block_is_right_before_its_turn() -> None:
    found = made.gathered([made.turn(1, "first", recalled=["0a"]), made.turn(2, "reply", Role.ASSISTANT)])
    said = [message["content"] for message in assemble.assemble(found, asked()).messages]
    assert said[1].startswith(blocks.RECALLED)
    assert "- [0a] " in said[1]
    assert said[2:] == ["first", "reply", MESSAGE]


@given(read())
def test_only_episodes_are_under_the_header_of_episodes(found: ContextInputs) -> None:
    """DR12: when it is new as when its turn is replayed."""
    for message in assemble.assemble(found, asked()).messages:
        told = [one for one in IDS if lines_of([message], one)]
        if told:
            header = blocks.EPISODES if told[0] in EPISODES else blocks.RECALLED
            assert message["content"].startswith(header)
            assert {one in EPISODES for one in told} == {told[0] in EPISODES}


def test_episodes_are_right_after_recalled_memories_and_before_past_turns() -> None:
    others = [made.block(BlockKind.PAST_TURNS, "x")]
    found = made.gathered([], [made.result("0a")], others, episodes=[made.result("e0")])
    kinds = [block.kind for block in assemble.assemble(found, asked()).blocks]
    assert kinds == [BlockKind.RECALLED, BlockKind.EPISODES, BlockKind.PAST_TURNS]


def test_a_turn_is_replayed_with_both_its_blocks() -> None:
    found = made.gathered([made.turn(1, "first", recalled=["e0", "0a"])])
    said = [message["content"] for message in assemble.assemble(found, asked()).messages]
    assert [text.splitlines()[0] for text in said[1:3]] == [blocks.RECALLED, blocks.EPISODES]
    assert said[3:] == ["first", MESSAGE]


def test_a_line_whose_turn_has_left_the_window_is_shown_again() -> None:
    found = made.gathered([made.turn(7)], [made.result("0a")], recalled_before={"0a": (1, 3)})
    shaped = assemble.assemble(found, asked())
    assert [one.memory.id for one in shaped.new_memories] == ["0a"]
    assert shaped.withheld == []


def test_a_memory_that_changed_is_shown_again_and_removed_from_its_older_turn() -> None:
    found = made.gathered([made.turn(1, recalled=["0a", "0b"])], [made.result("0a", "edited", 2)])
    messages = assemble.assemble(found, asked()).messages
    assert "- [0a] " not in messages[1]["content"]
    assert "- [0b] " in messages[1]["content"]
    assert "- [0a] (general): edited" in messages[3]["content"]


def test_a_memory_that_was_deleted_is_no_longer_replayed() -> None:
    """LT13: forgetting an entry deletes its marks; a stale window must not show it."""
    found = made.gathered([made.turn(1, recalled=["0a"])], recalled_before={})
    assert [m["content"] for m in assemble.assemble(found, asked()).messages] == [SYSTEM, "turn 1", MESSAGE]


def test_a_reinforced_memory_counts_as_unchanged() -> None:
    seen_again = made.entry("0a").model_copy(update={"reinforcement_count": 9, "version": 4})
    recalled = replace(made.result("0a"), memory=seen_again)
    shaped = assemble.assemble(made.gathered([made.turn(1, recalled=["0a"])], [recalled]), asked())
    assert (shaped.new_memories, shaped.withheld) == ([], ["0a"])


def full() -> ContextInputs:
    """Return something of everything that may give way."""
    turns = [made.turn(9, "in short", Role.SUMMARY), made.turn(1, "one " * 20), made.turn(2, "two " * 20)]
    others = [made.block(kind, f"{kind} first " * 5, f"{kind} second " * 5) for kind in OTHERS]
    facts, episodes = (
        [made.result(one, f"{one} alpha " * 9), made.result(other, f"{other} beta " * 9)]
        for one, other in (("0a", "0b"), ("e0", "e1"))
    )
    return made.gathered(turns, facts, others, episodes=episodes)


def steps(found: ContextInputs) -> list[tuple[int, dict[str, int]]]:
    """Return every different context that lower and lower budgets give, with its tokens."""
    seen: list[tuple[int, dict[str, int]]] = []
    budget = assemble.assemble(found, asked()).tokens
    while True:
        shaped = assemble.assemble(found, asked(budget))
        seen.append((shaped.tokens, standing(shaped.blocks, shaped.messages)))
        if shaped.tokens > budget:
            return seen[:-1]
        budget = shaped.tokens - 1


def standing(headed: Sequence[Block], messages: Sequence[dict[str, str]]) -> dict[str, int]:
    lines = {str(block.kind): len(block.lines) for block in headed}
    return lines | {"turns": sum(m["role"] == "user" for m in messages) - 1}


def test_max_tokens_shortens_past_turns_then_episodes_then_inventories_then_oldest_turns_then_recalled() -> (
    None
):
    """CX1: one line or turn at a time, the last line and the oldest turn first."""
    order = ["past_turns", "episodes", "subagents", "patrol", "working_memory", "turns", "recalled"]
    expected = dict.fromkeys(order, 2)
    found = [dict(stood) for _, stood in steps(full())]
    assert found[0] == expected
    for kind in order:
        for left in (1, 0):
            found.pop(0)
            expected = {**expected, kind: left}
            assert found[0] == {name: n for name, n in expected.items() if n or name == "turns"}
    assert found[1:] == []


def test_the_oldest_turn_is_removed_first_and_the_first_line_of_a_block_last() -> None:
    shaped = assemble.assemble(full(), asked(steps(full())[11][0]))
    said = [message["content"] for message in shaped.messages]
    assert "one " * 20 not in said
    assert "two " * 20 in said
    assert shaped.shortened == [
        "past_turns",
        "episodes",
        "subagents",
        "patrol",
        "working_memory",
        "turns",
    ]
    last = assemble.assemble(full(), asked(steps(full())[13][0]))
    assert [one.memory.id for one in last.new_memories] == ["0a"]


def test_a_recalled_memory_that_did_not_fit_is_not_recorded_as_shown() -> None:
    shaped = assemble.assemble(full(), asked(0))
    assert (shaped.new_memories, shaped.lines, shaped.blocks) == ([], (), [])


@given(read(), some.integers(0, 300))
def test_a_budget_is_kept_and_nothing_is_removed_that_would_have_fitted(
    found: ContextInputs, limit: int
) -> None:
    shaped = assemble.assemble(found, asked(limit))
    sizes = [
        assemble._assemble(less, cut, asked()).tokens for less, cut in assemble._shorten_step_by_step(found)
    ]
    assert shaped.tokens == next((size for size in sizes if size <= limit), sizes[-1])
    assert (shaped.shortened == []) == (sizes[0] <= limit or len(sizes) == 1)


@given(read(), some.integers(0, 300))
def test_the_message_the_system_text_and_the_summary_are_never_shortened(
    found: ContextInputs, limit: int
) -> None:
    said = [message["content"] for message in assemble.assemble(found, asked(limit)).messages]
    assert said[0] == SYSTEM
    assert said[-1] == MESSAGE
    summarised = any(turn.role is Role.SUMMARY for turn in found.turns)
    assert (f"{blocks.SUMMARY}\nin short" in said) == summarised


def test_a_message_over_the_budget_is_sent_all_the_same() -> None:
    shaped = assemble.assemble(full(), Request("x" * 4000, SYSTEM, max_tokens=10))
    assert [m["content"] for m in shaped.messages][-1] == "x" * 4000
    assert shaped.tokens > 1000


def test_a_message_without_any_inputs_is_a_context() -> None:
    shaped = assemble.assemble(ContextInputs(), Request("hello"))
    assert shaped.messages == [{"role": "user", "content": "hello"}]
    assert (shaped.blocks, shaped.shortened, shaped.tokens) == ([], [], 2 + 4)


@given(read())
def test_tokens_are_those_of_the_messages(found: ContextInputs) -> None:
    shaped = assemble.assemble(found, asked())
    assert shaped.tokens == tokens.of_messages(shaped.messages)


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("abcd", 1), ("abcde", 2), ("Привет", 3), ("日本語", 3), ("👍", 1)]
)
def test_a_token_is_four_bytes_of_utf_8_rounded_up(text: str, count: int) -> None:
    """CX3: the stated rule."""
    assert tokens.of_text(text) == count
    assert tokens.of_messages([{"role": "user", "content": text}] * 2) == 2 * (count + 4)


def test_only_the_last_of_several_summaries_is_shown() -> None:
    turns: list[Turn] = [made.turn(1, "old", Role.SUMMARY), made.turn(2, "new", Role.SUMMARY), made.turn(3)]
    said = [message["content"] for message in assemble.assemble(made.gathered(turns), asked()).messages]
    assert said == [SYSTEM, f"{blocks.SUMMARY}\nnew", "turn 3", MESSAGE]
