"""The turns that memories come from: what is left of a memory when some of them are withdrawn."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from shared.conversation.turns.turn_range import TurnKey, TurnRange, ranges_of
from shared.infra.transaction import Transaction
from shared.memory.longterm import history, source_queries
from shared.memory.longterm.memory import Memory, Source


class WithdrawnSources(NamedTuple):
    """The memories that came from withdrawn turns alone, and those that came from others, too."""

    gone: list[Memory]
    kept: list[Memory]


async def withdraw(tx: Transaction, actor: str, turn_keys: Iterable[TurnKey]) -> WithdrawnSources:
    """Lock the memories that come from turns, and take these sources from those that have others.

    Those that came from these turns alone stay as they are, for the caller to delete.
    """
    ranges = ranges_of(turn_keys)
    if not ranges:
        return WithdrawnSources([], [])
    memories = await _lock_all(tx, ranges)
    rest_by_id = {memory.id: without_turns(memory.sources, ranges) for memory in memories}
    kept = [memory for memory in memories if rest_by_id[memory.id] or memory.saved_without_source]
    rows = [
        {"id": memory.id, "sources": [source.model_dump() for source in rest_by_id[memory.id]]}
        for memory in kept
    ]
    changed = await source_queries.update_sources(tx, rows) if rows else []
    await history.add(tx, actor, "source_removed", changed)
    kept_ids = {memory.id for memory in kept}
    return WithdrawnSources([memory for memory in memories if memory.id not in kept_ids], changed)


async def _lock_all(tx: Transaction, ranges: Sequence[TurnRange]) -> list[Memory]:
    """Lock the memories from these turns.

    Locking may wait for an enrichment, which then has added memories; so this repeats until none are new.
    """
    count = -1
    while True:
        memories = await source_queries.lock_from_turns(tx, ranges)
        if len(memories) <= count or not memories:
            return memories
        count = len(memories)


def without_turns(sources: Iterable[Source], withdrawn: Sequence[TurnRange]) -> list[Source]:
    """Return what is left of sources. A source that names no turn stays."""
    rest: list[Source] = []
    for source in sources:
        if source.seq is None:
            rest.append(source)
            continue
        first_seq = source.seq if source.first_seq is None else source.first_seq
        parts = TurnRange(source.session_id, first_seq, source.seq).without(withdrawn)
        rest += [_of_range(part, source) for part in parts]
    return rest


def from_turns(turn_keys: Iterable[TurnKey]) -> list[Source]:
    """Return the sources of what was learnt from turns, given as (session id, seq)."""
    return [_of_range(part, Source(session_id=part.session_id)) for part in ranges_of(turn_keys)]


def _of_range(part: TurnRange, source: Source) -> Source:
    first_seq = None if part.first_seq == part.last_seq else part.first_seq
    return source.model_copy(update={"first_seq": first_seq, "seq": part.last_seq})
