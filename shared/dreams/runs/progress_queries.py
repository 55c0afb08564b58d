"""Statements on the memories that passes have reviewed and the preferences that they have counted."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import BigInteger, Integer, Text, bindparam, delete, func, select, text, update
from sqlalchemy.dialects.postgresql import ARRAY

from shared.dreams.passes.preferences import Evidence, Level
from shared.dreams.runs.dream_run import Run
from shared.dreams.runs.table import dream_refused_memory, dream_reviewed_memory, preference_occurrence
from shared.foundation.scope import Scope
from shared.infra.postgres import exact_scope, is_any_of, tenant_filter
from shared.infra.transaction import Transaction
from shared.memory.longterm.memory import Memory

# The join leaves out memories that were deleted meanwhile: a foreign key would reject them.
_SAVE_REVIEWED = text(
    """
    INSERT INTO dream_reviewed_memory (tenant, memory_id, version)
    SELECT m.tenant, m.id, r.version FROM unnest(:ids, :versions) AS r (id, version)
    JOIN memory m ON m.tenant = :tenant AND m.id = r.id
    ON CONFLICT (tenant, memory_id) DO UPDATE SET version = excluded.version
    """
).bindparams(bindparam("ids", type_=ARRAY(Text)), bindparam("versions", type_=ARRAY(BigInteger)))

_SAVE_REFUSED = text(
    """
    INSERT INTO dream_refused_memory (tenant, memory_id, version, batch_size)
    SELECT m.tenant, m.id, m.version, r.batch_size FROM unnest(:ids, :sizes) AS r (id, batch_size)
    JOIN memory m ON m.tenant = :tenant AND m.id = r.id
    ON CONFLICT (tenant, memory_id) DO UPDATE SET version = excluded.version, batch_size = excluded.batch_size
    """
).bindparams(bindparam("ids", type_=ARRAY(Text)), bindparam("sizes", type_=ARRAY(Integer)))

# The scope is read from the turn. A turn that was deleted meanwhile adds no row.
_SAVE_OCCURRENCE = text(
    """
    INSERT INTO preference_occurrence (tenant, agent_id, user_id, key, level, session_id, seq, first_seq,
                                       run_id)
    SELECT t.tenant, t.agent_id, t.user_id, :key, :level, t.session_id, t.seq, :first_seq, :run_id
    FROM turn t WHERE t.tenant = :tenant AND t.session_id = :session_id AND t.seq = :seq
    ON CONFLICT (tenant, session_id, seq, key) DO NOTHING
    """
)


async def save_reviewed(tx: Transaction, versions: Mapping[str, int]) -> None:
    """Save the version of each memory that a consolidation has reviewed, if the memory still exists."""
    if not versions:
        return
    values = {"tenant": tx.tenant, "ids": list(versions), "versions": list(versions.values())}
    await tx.execute(_SAVE_REVIEWED, values)
    was_refused = is_any_of(dream_refused_memory.c.memory_id, versions)
    await tx.execute(
        delete(dream_refused_memory).where(tenant_filter(dream_refused_memory, tx.tenant), was_refused)
    )


async def list_reviewed(tx: Transaction, scope: Scope, ids: Sequence[str]) -> dict[str, int]:
    """Return the last reviewed version of each of these memories, by id."""
    where = (
        tenant_filter(dream_reviewed_memory, scope.tenant),
        is_any_of(dream_reviewed_memory.c.memory_id, ids),
    )
    rows = await tx.execute(
        select(dream_reviewed_memory.c.memory_id, dream_reviewed_memory.c.version).where(*where)
    )
    return {row.memory_id: row.version for row in rows}


async def save_refused(tx: Transaction, batch_sizes: Mapping[str, int]) -> None:
    """Save the size of the batch in which each of these memories got no usable reply."""
    if batch_sizes:
        values = {"tenant": tx.tenant, "ids": list(batch_sizes), "sizes": list(batch_sizes.values())}
        await tx.execute(_SAVE_REFUSED, values)


async def list_refused(tx: Transaction, memories: Sequence[Memory]) -> dict[str, int]:
    """Return the size of the refused batch by memory id, of those that have not changed since."""
    if not memories:
        return {}
    versions = {memory.id: memory.version for memory in memories}
    where = (
        tenant_filter(dream_refused_memory, memories[0].tenant),
        is_any_of(dream_refused_memory.c.memory_id, versions),
    )
    rows = await tx.execute(select(dream_refused_memory).where(*where))
    return {row.memory_id: row.batch_size for row in rows if row.version == versions[row.memory_id]}


async def save_occurrences(
    tx: Transaction, run: Run, rows: Sequence[Mapping[str, Any]], inferred_keys: Sequence[str]
) -> None:
    """Save occurrences {key, level, session_id, seq, first_seq}, once per turn; mark keys as inferred."""
    for row in rows:
        await tx.execute(_SAVE_OCCURRENCE, {**row, "tenant": run.tenant, "run_id": run.id})
    if inferred_keys:
        where = (
            exact_scope(preference_occurrence, run.scope),
            is_any_of(preference_occurrence.c.key, inferred_keys),
            preference_occurrence.c.inferred_at.is_(None),
        )
        await tx.execute(update(preference_occurrence).where(*where).values(inferred_at=func.now()))


async def list_evidence(tx: Transaction, scope: Scope) -> dict[str, list[Evidence]]:
    """Return what was counted so far, by key of the preference."""
    seqs_by_place: dict[tuple[str, str, int, str], set[int]] = {}
    for row in await tx.execute(
        select(preference_occurrence).where(exact_scope(preference_occurrence, scope))
    ):
        seqs_by_place.setdefault((row.key, row.session_id, row.first_seq, row.level), set()).add(row.seq)
    by_key: dict[str, list[Evidence]] = {}
    for (key, session_id, _, level), seqs in sorted(seqs_by_place.items()):
        by_key.setdefault(key, []).append(Evidence(session_id, frozenset(seqs), Level(level)))
    return by_key
