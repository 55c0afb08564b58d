"""Assemble the messages of a context from its inputs, with less and less of them until it fits.

What the next context repeats comes first, in the order in which it does: the caller's system text, the
pinned texts, the summary, the replayed turns, and what was recalled for the message. After it comes what
is read anew each time, and then the message. So a context begins with all that the one before showed up to
its first block of the second sort, and goes on with its message: a provider's prompt cache serves that much.

A memory is in `messages` exactly once. It is shown with the turn for which it was recalled, and replayed
with that turn; meanwhile it is withheld from later turns. A line is replayed only while the memory's
last recall names that turn. So a memory that has since been updated, shown again or deleted drops out
of the older turn. All functions here are pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from shared.context import blocks, skills, tokens
from shared.context.request import Request
from shared.context.types import (
    SHORTENING_ORDER,
    TURNS,
    Block,
    BlockKind,
    BuiltContext,
    ContextInputs,
)
from shared.conversation.turns.turn import RecalledLine, Turn
from shared.foundation.categories import EPISODES, is_below
from shared.foundation.roles import Role
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.memory_result import MemoryResult

Message = dict[str, str]


def assemble(inputs: ContextInputs, request: Request) -> BuiltContext:
    """Return the longest context that fits `max_tokens`, shortened in the order of SHORTENING_ORDER.

    The current message, the caller's own system text, the pinned texts and the summary are never shortened,
    even if they alone are over the budget.
    """
    for shorter_inputs, shortened in _shorten_step_by_step(inputs):
        context = _assemble(shorter_inputs, shortened, request)
        if request.max_tokens is None or context.tokens <= request.max_tokens:
            break
    return context


def _shorten_step_by_step(inputs: ContextInputs) -> Iterator[tuple[ContextInputs, list[str]]]:
    """Yield all inputs, then less and less of them, with the kinds that were shortened so far."""
    shortened: list[str] = []
    yield inputs, shortened
    for kind in SHORTENING_ORDER:
        while (shorter := _shorten(inputs, kind)) != inputs:
            shortened = [*shortened, kind] if kind not in shortened else shortened
            inputs = shorter
            yield inputs, shortened


def _shorten(inputs: ContextInputs, kind: str) -> ContextInputs:
    """Return the inputs with less of one kind; the same if there is nothing of it."""
    if kind == TURNS:
        return replace(inputs, turns=_without_oldest_turns(inputs.turns, inputs.window_step))
    if kind == BlockKind.RECALLED:
        return replace(inputs, recalled=inputs.recalled[:-1])
    if kind == BlockKind.EPISODES:
        return replace(inputs, episodes=inputs.episodes[:-1])
    if kind in {BlockKind.SKILLS, BlockKind.SKILL_CATALOGUE}:
        return skills.shorten(inputs, kind)
    return replace(inputs, other_blocks=_without_last_line(inputs.other_blocks, kind))


def _without_last_line(blocks_: Sequence[Block], kind: str) -> list[Block]:
    shorter = [replace(block, lines=block.lines[:-1]) if block.kind == kind else block for block in blocks_]
    return [block for block in shorter if block.lines]


def _without_oldest_turns(turns: Sequence[Turn], count: int) -> list[Turn]:
    """Leave out as many turns at once as the window's start moves by, so that contexts change as rarely."""
    oldest = [turn.seq for turn in turns if turn.role is not Role.SUMMARY][:count]
    return [turn for turn in turns if turn.role is Role.SUMMARY or turn.seq not in oldest]


def _assemble(inputs: ContextInputs, shortened: list[str], request: Request) -> BuiltContext:
    replayed_versions = _replayed_versions(inputs)
    facts = _not_replayed(inputs.recalled, replayed_versions)
    episodes = _not_replayed(inputs.episodes, replayed_versions)
    new_memories = [*facts, *episodes]
    new_ids = {result.memory.id for result in new_memories}
    skill_lines = skills.new_lines(inputs)
    memory_blocks = (blocks.recalled(facts), blocks.episodes(episodes))
    all_blocks = (*memory_blocks, *blocks.skills(skill_lines), *inputs.other_blocks)
    new_blocks = [block for block in all_blocks if block]
    first_blocks = [block for block in (inputs.core, inputs.summary) if block]
    messages = [
        *([_message("system", request.system)] if request.system else []),
        *(_message("system", blocks.text(block)) for block in first_blocks),
        *_summaries(inputs.turns),
        *_replay(inputs, new_ids),
        *(_message("system", blocks.text(block)) for block in new_blocks),
        _message("user", request.message),
    ]
    return BuiltContext(
        messages=messages,
        blocks=[*first_blocks, *new_blocks],
        new_memories=new_memories,
        lines=(*(_to_line(result.memory) for result in new_memories), *skill_lines),
        withheld=[result.memory.id for result in inputs.results if result.memory.id not in new_ids],
        tokens=tokens.of_messages(messages),
        shortened=shortened,
    )


def _not_replayed(
    results: Sequence[MemoryResult], replayed_versions: Mapping[str, int]
) -> list[MemoryResult]:
    return [
        result
        for result in results
        if replayed_versions.get(result.memory.id) != result.memory.content_version
    ]


def _to_line(memory: Memory) -> RecalledLine:
    is_episode = is_below(EPISODES, memory.category)
    return RecalledLine(id=memory.id, line=blocks.recalled_line(memory), is_episode=is_episode)


def _replayed_versions(inputs: ContextInputs) -> dict[str, int]:
    """Return the content versions of the memories that a replayed turn still shows, by memory id."""
    return {
        line.id: inputs.recalled_before[line.id][0]
        for turn in inputs.turns
        for line in turn.recalled_lines
        if _is_replayed(inputs, turn, line)
    }


def _is_replayed(inputs: ContextInputs, turn: Turn, line: RecalledLine) -> bool:
    last_recall = inputs.recalled_before.get(line.id)
    return last_recall is not None and last_recall[1] == turn.seq


def _summaries(turns: Sequence[Turn]) -> list[Message]:
    """Return the last summary that the caller has reported as a turn: data, whoever wrote it."""
    summaries = [turn for turn in turns if turn.role is Role.SUMMARY]
    return [_message("system", blocks.reported_summary(turn)) for turn in summaries[-1:]]


def _replay(inputs: ContextInputs, new_ids: set[str]) -> Iterator[Message]:
    for turn in inputs.turns:
        if turn.role is Role.SUMMARY:
            continue
        lines = [
            line
            for line in turn.recalled_lines
            if skills.is_current(inputs.skills, line)
            or (_is_replayed(inputs, turn, line) and line.id not in new_ids)
        ]
        yield from (_message("system", text) for text in blocks.replayed_texts(lines))
        yield _message(turn.role, turn.content)


def _message(role: str, content: str) -> Message:
    return {"role": str(role), "content": content}
