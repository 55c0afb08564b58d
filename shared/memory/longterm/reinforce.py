"""Reinforce live memories with what another one of the same meaning adds to them.

The caller's transaction has locked the rows, so what is read is what is changed. A change of a field that
callers can change is a new version, so that nobody replaces it without having read it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import func

from shared.foundation.origin import Origin
from shared.infra.transaction import Transaction
from shared.memory.longterm import index_document, labels, queries
from shared.memory.longterm.memory import MAX_REINFORCEMENT_COUNT, Memory, Source
from shared.search.text import tsvector


class Addition(NamedTuple):
    """What a memory gains when the same is saved once more. A time that is None is open.

    `origin` is None where others say the same in other words: that vouches for no text.
    """

    origin: Origin | None
    tags: Sequence[str] = ()
    metadata: Mapping[str, str] = {}
    importance: float = 0.0
    valid_from: datetime | None = None
    expires_at: datetime | None = None
    sources: Sequence[Mapping[str, Any]] = ()
    observations: int = 0

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "Addition":
        """Return what the row of a new memory adds to a live one that says the same."""
        return cls(
            origin=Origin.from_row(row),
            tags=row["tags"],
            importance=row["importance"],
            valid_from=row["valid_from"],
            expires_at=row["expires_at"],
            sources=row["sources"],
            observations=row["reinforcement_count"],
        )


async def widen(tx: Transaction, memory: Memory, addition: Addition) -> Memory:
    """Add what a locked memory lacks, as a new version; return it as it was if it lacks nothing.

    Tags and metadata are joined, and the higher importance counts. The memory is valid from the earlier time
    on and expires at the later one, because both saves were acknowledged. Its origin is that of the greater
    trust: somebody who is trusted so far has said it, too.
    """
    fields: dict[str, Any] = {
        "tags": labels.join_tags(memory.tags, addition.tags),
        "metadata": labels.join_metadata(memory.metadata, addition.metadata),
        "importance": max(memory.importance, addition.importance),
        "valid_from": earliest([memory.valid_from, addition.valid_from]),
        "expires_at": latest([memory.expires_at, addition.expires_at]),
    }
    values = {name: value for name, value in fields.items() if value != getattr(memory, name)}
    origin = addition.origin
    if origin is not None and origin.trust > memory.origin.trust:
        values |= origin.columns()
    if not values:
        return memory
    terms = tsvector.terms_of(index_document.keywords(memory.model_copy(update=values)))
    values |= {"version": memory.version + 1, "search_terms": func.array_to_tsvector(terms)}
    return await queries.update_columns(tx, memory.id, values)


def earliest(moments: Sequence[datetime | None]) -> datetime | None:
    """Return the first of these times; None, which is open, comes before all."""
    closed = [moment for moment in moments if moment is not None]
    return min(closed) if len(closed) == len(moments) else None


def latest(moments: Sequence[datetime | None]) -> datetime | None:
    """Return the last of these times; None, which is open, comes after all."""
    closed = [moment for moment in moments if moment is not None]
    return max(closed) if len(closed) == len(moments) else None


async def reinforce(tx: Transaction, memory: Memory, addition: Addition) -> Memory:
    """Add another observation to a locked memory: counts, time, sources, and what it lacks."""
    known = set(memory.sources)
    new_sources = [source for item in addition.sources if (source := Source(**item)) not in known]
    count = memory.reinforcement_count + addition.observations
    values = {
        "reinforcement_count": min(count, MAX_REINFORCEMENT_COUNT),
        "last_seen_at": func.now(),
        "sources": [source.model_dump() for source in [*memory.sources, *new_sources]],
        "saved_without_source": memory.has_other_origin or not addition.sources,
    }
    reinforced = await queries.update_columns(tx, memory.id, values)
    return await widen(tx, reinforced, addition)
