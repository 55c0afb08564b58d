"""From what was read to what is sent: pure functions, tried again with less until it fits.

An entry stands in `messages` exactly once. It is shown with the turn that it was recalled for
and replayed with that turn; while that is so it is withheld from later turns. A line is replayed
only while its mark names that turn, so an entry that was edited, shown again or forgotten
since drops out of the older turn by itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from shared.context import blocks, tokens
from shared.context.types import (
    SHORTENING_ORDER,
    TURNS,
    Block,
    BlockKind,
    BuiltContext,
    ContextInputs,
    Request,
)
from shared.conversation.turns.turn import RecalledLine, Turn
from shared.foundation.categories import EPISODES, is_below
from shared.foundation.roles import Role
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.search import MemoryResult

Message = dict[str, str]


def assemble(gathered: ContextInputs, request: Request) -> BuiltContext:
    """Return the context that fits `max_tokens`.

    Shortened in the order of GIVES_WAY. The current message and the caller's own system text are
    never cut, even if they alone are over the budget.
    """
    best = None
    for smaller, cut in _ever_smaller(gathered):
        best = _assemble(smaller, request, cut)
        if request.max_tokens is None or best.tokens <= request.max_tokens:
            break
    if best is None:
        raise AssertionError
    return best


def _ever_smaller(gathered: ContextInputs) -> Iterator[tuple[ContextInputs, list[str]]]:
    """Yield the whole, then ever less of it, with the kinds that gave way so far."""
    cut: list[str] = []
    yield gathered, cut
    for kind in SHORTENING_ORDER:
        while _has(gathered, kind):
            cut = [*cut, kind] if kind not in cut else cut
            gathered = _with_less(gathered, kind)
            yield gathered, cut


def _has(gathered: ContextInputs, kind: str) -> bool:
    if kind == TURNS:
        return any(turn.role is not Role.SUMMARY for turn in gathered.turns)
    if kind == BlockKind.RECALLED:
        return bool(gathered.recalled)
    if kind == BlockKind.EPISODES:
        return bool(gathered.episodes)
    return any(block.kind == kind for block in gathered.other_blocks)


def _with_less(gathered: ContextInputs, kind: str) -> ContextInputs:
    if kind == TURNS:
        return replace(gathered, turns=_without_oldest(gathered.turns))
    if kind == BlockKind.RECALLED:
        return replace(gathered, recalled=gathered.recalled[:-1])
    if kind == BlockKind.EPISODES:
        return replace(gathered, episodes=gathered.episodes[:-1])
    return replace(gathered, other_blocks=_shortened(gathered.other_blocks, kind))


def _shortened(others: Sequence[Block], kind: str) -> list[Block]:
    shorter = [replace(block, lines=block.lines[:-1]) if block.kind == kind else block for block in others]
    return [block for block in shorter if block.lines]


def _without_oldest(turns: Sequence[Turn]) -> list[Turn]:
    oldest = next(turn for turn in turns if turn.role is not Role.SUMMARY)
    return [turn for turn in turns if turn is not oldest]


def _assemble(gathered: ContextInputs, request: Request, cut: list[str]) -> BuiltContext:
    standing = _standing(gathered)
    facts, episodes = _new(gathered.recalled, standing), _new(gathered.episodes, standing)
    new = [*facts, *episodes]
    shown = {one.memory.id for one in new}
    headed = [
        block
        for block in (blocks.recalled(facts), blocks.episodes(episodes), *gathered.other_blocks)
        if block
    ]
    messages = [
        *([_message("system", request.system)] if request.system else []),
        *_summaries(gathered.turns),
        *_replay(gathered, shown),
        *(_message("system", blocks.text(block)) for block in headed),
        _message("user", request.message),
    ]
    return BuiltContext(
        messages=messages,
        blocks=headed,
        new_memories=new,
        lines=tuple(_line(one.memory) for one in new),
        withheld=[one.memory.id for one in gathered.found if one.memory.id not in shown],
        tokens=tokens.of_messages(messages),
        shortened=cut,
    )


def _new(found: Sequence[MemoryResult], standing: Mapping[str, int]) -> list[MemoryResult]:
    return [one for one in found if standing.get(one.memory.id) != one.memory.content_version]


def _line(entry: Memory) -> RecalledLine:
    episode = is_below(EPISODES, entry.category)
    return RecalledLine(id=entry.id, line=blocks.recalled_line(entry), is_episode=episode)


def _standing(gathered: ContextInputs) -> dict[str, int]:
    """Return the entries that a replayed turn still shows, with the content version shown."""
    return {
        line.id: gathered.recalled_before[line.id][0]
        for turn in gathered.turns
        for line in turn.recalled_lines
        if _stands(gathered, turn, line)
    }


def _stands(gathered: ContextInputs, turn: Turn, line: RecalledLine) -> bool:
    mark = gathered.recalled_before.get(line.id)
    return mark is not None and mark[1] == turn.seq


def _summaries(turns: Sequence[Turn]) -> list[Message]:
    summaries = [turn for turn in turns if turn.role is Role.SUMMARY]
    return [_message("system", f"{blocks.SUMMARY}\n{turn.content}") for turn in summaries[-1:]]


def _replay(gathered: ContextInputs, shown_anew: set[str]) -> Iterator[Message]:
    for turn in gathered.turns:
        if turn.role is Role.SUMMARY:
            continue
        lines = [
            line
            for line in turn.recalled_lines
            if _stands(gathered, turn, line) and line.id not in shown_anew
        ]
        yield from (_message("system", text) for text in blocks.replayed_texts(lines))
        yield _message(turn.role, turn.content)


def _message(role: str, content: str) -> Message:
    return {"role": str(role), "content": content}
