"""CX7, CV3: between two steps of the window, a context begins with all that the one before showed.

Histories of a session are played through the pure functions that build contexts and move the window: what
is stored with a turn is what the next context replays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.context import assemble, blocks
from shared.context.request import Request
from shared.context.types import FIRST_BLOCKS, STORED_BLOCKS, BlockKind, BuiltContext
from shared.conversation.summary.summary import SessionSummary
from shared.conversation.turns import window_start
from shared.conversation.turns.turn import Turn
from shared.foundation.roles import Role
from shared.memory.longterm.memory_result import MemoryResult
from shared.memory.pinned.pinned_text import CoreText
from tests.unit.context import builders

SIZE, STEP, MOST = 7, 3, 11
FACTS, EPISODES = ["0a", "0b", "0c"], ["e0", "e1"]
VOLATILE = [kind for kind in BlockKind if kind not in STORED_BLOCKS | FIRST_BLOCKS]


class Asked(NamedTuple):
    """A message for which a context is built: what it recalls, and the budget."""

    message: str
    recalled: list[str]
    others: list[str]
    max_tokens: int | None
    is_recorded: bool = True


class Said(NamedTuple):
    """A turn that the agent appends."""

    content: str
    role: Role


class Summarised(NamedTuple):
    """A worker stores the summary that is due, if there is one."""


Step = Asked | Said | Summarised


class Shown(NamedTuple):
    """A context, its message, and where the window started; under a budget, how many turns gave way."""

    context: BuiltContext
    message: str
    start: int
    first_replayed: int | None


@dataclass
class History:
    """A session's turns and the marks of what was recalled with them, as Postgres has them.

    With a model, the window waits for a summary, as long as fewer than MOST turns stand in it.
    """

    has_model: bool = False
    summary: SessionSummary | None = None
    turns: list[Turn] = field(default_factory=list)
    marks: dict[str, tuple[int, int]] = field(default_factory=dict)
    start: int = 0
    shown: list[Shown] = field(default_factory=list)

    def say(self, said: Said) -> None:
        self._add(builders.turn(len(self.turns) + 1, said.content, said.role))

    def ask(self, asked: Asked) -> None:
        window = [turn for turn in self.turns if turn.seq >= self.start]
        facts = [builders.result(memory_id) for memory_id in asked.recalled if memory_id in FACTS]
        episodes = [
            MemoryResult.unscored(builders.entry(memory_id, category="episodic/task"))
            for memory_id in asked.recalled
            if memory_id in EPISODES
        ]
        inputs = builders.context_inputs(
            window,
            facts,
            [builders.block(kind, *asked.others) for kind in VOLATILE if asked.others],
            episodes=episodes,
            recalled_before=_within(self.marks, self.start),
            core=blocks.core([CoreText("p", "persona", "kind\nand short")]),
            summary=blocks.summary(self.summary),
            window_step=STEP,
        )
        request = Request(asked.message, "You are helpful.", asked.is_recorded, asked.max_tokens)
        context = assemble.assemble(inputs, request)
        replayed = [
            turn.seq for turn in window if {"role": turn.role, "content": turn.content} in context.messages
        ]
        self.shown.append(Shown(context, asked.message, self.start, min(replayed, default=None)))
        if asked.is_recorded:
            seq = len(self.turns) + 1
            turn = builders.turn(seq, asked.message)
            self._add(turn.model_copy(update={"recalled_lines": list(context.lines)}))
            self.marks |= {line.id: (1, seq) for line in context.lines}

    def _add(self, turn: Turn) -> None:
        self.turns.append(turn)
        size = MOST if self.has_model else SIZE
        self.start = window_start.next_start(self._standing(), size, STEP) or self.start

    def _standing(self) -> list[int]:
        return [turn.seq for turn in self.turns if turn.seq >= self.start]

    def summarise(self) -> None:
        start = window_start.next_start(self._standing(), SIZE, STEP)
        if self.has_model and start is not None:
            self.summary = SessionSummary("s", f"what was said\nbefore {start}", 1, start - 1, "m")
            self.start = start


def _within(marks: Mapping[str, tuple[int, int]], start: int) -> dict[str, tuple[int, int]]:
    return {memory_id: mark for memory_id, mark in marks.items() if mark[1] >= start}


def stable_part(context: BuiltContext) -> list[dict[str, str]]:
    """Return the messages before the first volatile block: each block after it is one message."""
    volatile = [block for block in context.blocks if block.kind in VOLATILE]
    return context.messages[: len(context.messages) - 1 - len(volatile)]


memory_ids = st.lists(st.sampled_from([*FACTS, *EPISODES]), unique=True)
texts = st.text("xy\n ", min_size=1, max_size=12)
said = st.builds(Said, texts, st.sampled_from([Role.ASSISTANT, Role.USER, Role.SYSTEM]))


@st.composite
def histories(draw: st.DrawFn) -> list[Step]:
    """Draw a history; every message and turn has a text of its own."""
    others = st.lists(st.text("ab", min_size=1, max_size=5), max_size=2)
    asked = st.builds(Asked, texts, memory_ids, others, st.none(), st.booleans())
    summarised = st.builds(Summarised)
    steps = draw(st.lists(st.one_of(asked, asked, said, summarised), min_size=2, max_size=25))
    return [_numbered(number, step) for number, step in enumerate(steps)]


def _numbered(number: int, step: Step) -> Step:
    match step:
        case Asked():
            return step._replace(message=f"{number} {step.message}")
        case Said():
            return step._replace(content=f"{number} {step.content}")
    return step


def play(steps: Sequence[Step], *, has_model: bool = False) -> History:
    history = History(has_model)
    for step in steps:
        match step:
            case Said():
                history.say(step)
            case Asked():
                history.ask(step)
            case Summarised():
                history.summarise()
    return history


@settings(max_examples=300)
@given(steps=histories(), has_model=st.booleans())
def test_a_context_begins_with_what_the_one_before_showed_and_its_message(
    *, steps: list[Step], has_model: bool
) -> None:
    recorded = [step for step in steps if not isinstance(step, Asked) or step.is_recorded]
    shown = play(recorded, has_model=has_model).shown
    for first, second in pairwise(shown):
        if first.start == second.start:
            expected = [*stable_part(first.context), {"role": "user", "content": first.message}]
            assert second.context.messages[: len(expected)] == expected


@settings(max_examples=100)
@given(histories())
def test_a_context_that_is_not_recorded_changes_nothing_for_the_next(steps: list[Step]) -> None:
    recorded = [step for step in steps if not isinstance(step, Asked) or step.is_recorded]
    of_recorded = [shown.context.messages for shown in play(recorded).shown]
    asked = [step for step in steps if isinstance(step, Asked)]
    with_others = [
        shown.context.messages
        for shown, step in zip(play(steps).shown, asked, strict=True)
        if step.is_recorded
    ]
    assert of_recorded == with_others


@given(st.lists(texts, min_size=20, max_size=30), memory_ids, st.integers(60, 250))
def test_under_a_constant_budget_the_start_moves_by_steps_and_never_back(
    messages: list[str], recalled: list[str], max_tokens: int
) -> None:
    steps = [Asked(f"{n} {text}", recalled, [], max_tokens) for n, text in enumerate(messages)]
    shown = play(steps).shown
    for first, second in pairwise(shown):
        if None not in (first.first_replayed, second.first_replayed):
            moved = (second.first_replayed or 0) - (first.first_replayed or 0)
            assert moved % STEP == 0
            assert moved >= 0


@pytest.mark.parametrize(("size", "step"), [(30, 10), (7, 3), (2, 1), (50, 49)])
@pytest.mark.parametrize("count", [1, 2, 6, 7, 29, 30, 31, 39, 40, 50, 3000])
def test_a_step_leaves_fewer_turns_than_fill_the_window_and_moves_by_whole_steps(
    size: int, step: int, count: int
) -> None:
    """The numbers have gaps where turns were deleted: turns are counted."""
    seqs = [3 * position for position in range(1, count + 1)]
    start = window_start.next_start(seqs, size, step)
    if count < size:
        assert start is None
        return
    remaining = [seq for seq in seqs if seq >= (start or 0)]
    assert size - step <= len(remaining) < size
    assert (count - len(remaining)) % step == 0


def test_ten_turns_give_way_at_once_under_a_budget() -> None:
    turns = [builders.turn(seq, f"turn {seq}") for seq in range(1, 26)]
    inputs = builders.context_inputs(turns, window_step=10)
    full = assemble.assemble(inputs, Request("now?"))
    shorter = assemble.assemble(inputs, Request("now?", max_tokens=full.tokens - 1))
    assert [message["content"] for message in shorter.messages] == [
        *(f"turn {seq}" for seq in range(11, 26)),
        "now?",
    ]
