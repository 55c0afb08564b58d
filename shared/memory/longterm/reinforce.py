"""Reinforce live memories with what another one of the same meaning adds to them.

The caller's transaction has locked the rows, so what is read is what is changed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import func
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.memory.longterm import index_document, labels, queries
from shared.memory.longterm.memory import Memory, Source
from shared.search.text import tsvector


class Addition(NamedTuple):
    """What a memory gains when the same is saved once more."""

    tags: Sequence[str] = ()
    metadata: Mapping[str, str] = {}
    importance: float = 0.0
    sources: Sequence[Mapping[str, Any]] = ()
    observations: int = 0

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "Addition":
        """Return what the row of a new memory adds to a live one that says the same."""
        return cls(
            tags=row["tags"],
            importance=row["importance"],
            sources=row["sources"],
            observations=row["reinforcement_count"],
        )


async def add_labels(connection: AsyncConnection, memory: Memory, addition: Addition) -> Memory:
    """Add tags and metadata to a locked memory, as a new version; return it as it was if it lacks none."""
    tags = labels.join_tags(memory.tags, addition.tags)
    metadata = labels.join_metadata(memory.metadata, addition.metadata)
    if tags == memory.tags and metadata == memory.metadata:
        return memory
    changed = memory.model_copy(update={"tags": tags, "metadata": metadata})
    terms = tsvector.terms_of(index_document.keywords(changed))
    values = {"tags": tags, "metadata": metadata, "version": memory.version + 1}
    values |= {"search_terms": func.array_to_tsvector(terms)}
    return await queries.update_columns(connection, memory.tenant, memory.id, values)


async def reinforce(connection: AsyncConnection, memory: Memory, addition: Addition) -> Memory:
    """Add another observation to a locked memory: counts, time, importance, sources, tags and metadata."""
    known = set(memory.sources)
    new_sources = [source for item in addition.sources if (source := Source(**item)) not in known]
    values = {
        "reinforcement_count": memory.reinforcement_count + addition.observations,
        "last_seen_at": func.now(),
        "importance": max(memory.importance, addition.importance),
        "sources": [source.model_dump() for source in [*memory.sources, *new_sources]],
    }
    reinforced = await queries.update_columns(connection, memory.tenant, memory.id, values)
    return await add_labels(connection, reinforced, addition)
