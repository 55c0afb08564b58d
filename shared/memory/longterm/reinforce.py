"""Reinforce live memories with what another one of the same meaning adds to them.

The caller's transaction has locked the rows, so what is read is what is changed.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import bindparam, func, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.types import LargeBinary

from shared.foundation.scope import Scope
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


# The chain of successors is followed to its end: a raw memory may be enriched, its successor merged, and the
# merged one merged again. `UNION` drops what was reached before, so a cycle ends.
_FIND_LIVE_SUCCESSORS = text(
    """
    WITH RECURSIVE chain AS (
        SELECT m.fingerprint, m.archived_at AS since, successor.id
        FROM memory m CROSS JOIN LATERAL unnest(m.superseded_by) AS successor (id)
        WHERE m.tenant = :tenant AND m.agent_id = :agent_id
          AND m.user_id IS NOT DISTINCT FROM CAST(:user_id AS text)
          AND m.fingerprint = ANY (:fingerprints) AND m.archived_at IS NOT NULL
        UNION
        SELECT chain.fingerprint, chain.since, successor.id
        FROM chain JOIN memory m ON m.tenant = :tenant AND m.id = chain.id AND m.archived_at IS NOT NULL
        CROSS JOIN LATERAL unnest(m.superseded_by) AS successor (id)
    )
    SELECT chain.fingerprint, chain.since, live.id
    FROM chain JOIN memory live ON live.tenant = :tenant AND live.id = chain.id AND live.archived_at IS NULL
      AND live.agent_id = :agent_id AND live.user_id IS NOT DISTINCT FROM CAST(:user_id AS text)
    ORDER BY chain.since, live.id
    """
).bindparams(bindparam("fingerprints", type_=ARRAY(LargeBinary)))


async def find_live_successors(
    connection: AsyncConnection, scope: Scope, fingerprints: Sequence[bytes]
) -> dict[bytes, list[str]]:
    """Return the ids of the live memories that archived ones with these fingerprints became at last.

    If several archived memories have the same fingerprint, the last one counts whose chain has a live end.
    """
    values = {"tenant": scope.tenant, "agent_id": scope.agent_id, "user_id": scope.user_id}
    rows = await connection.execute(_FIND_LIVE_SUCCESSORS, values | {"fingerprints": list(fingerprints)})
    by_archived: dict[bytes, dict[datetime, list[str]]] = {}
    for row in rows:
        by_archived.setdefault(bytes(row.fingerprint), {}).setdefault(row.since, []).append(row.id)
    return {fingerprint: ids[max(ids)] for fingerprint, ids in by_archived.items()}
