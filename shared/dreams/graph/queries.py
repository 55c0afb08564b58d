"""Every statement on what runs have changed in graphs, and on the memories that were extracted from."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import exists, insert, select
from sqlalchemy.dialects.postgresql import insert as upsert

from shared.dreams.graph.table import dream_extracted_memory, dream_graph_change
from shared.foundation.scope import Scope
from shared.foundation.stages import MemoryState
from shared.infra.postgres import exact_scope, tenant_filter
from shared.infra.transaction import Transaction
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.table import IS_UNEXPIRED
from shared.memory.longterm.table import memory as memory_table

_NAMES = ("pass", "action", "record", "record_id", "reason", "before", "after")


async def insert_changes(tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert what a pass has changed."""
    if rows:
        await tx.execute(insert(dream_graph_change), [dict(row) for row in rows])


async def list_changes(tx: Transaction, run_id: str) -> list[dict[str, Any]]:
    """Return what a run has changed in its graph, in the order in which that was done."""
    where = (tenant_filter(dream_graph_change, tx.tenant), dream_graph_change.c.run_id == run_id)
    columns = [dream_graph_change.c[name] for name in _NAMES]
    rows = await tx.execute(select(*columns).where(*where).order_by(dream_graph_change.c.id))
    return [dict(zip(_NAMES, row, strict=True)) for row in rows]


async def list_unextracted(tx: Transaction, scope: Scope, limit: int) -> list[Memory]:
    """Return facts out of the scope's conversations that no extraction has read as they are, oldest first."""
    columns = memory_table.c
    read = dream_extracted_memory.c
    is_read = exists(
        select(read.memory_id).where(
            read.tenant == columns.tenant,
            read.memory_id == columns.id,
            read.content_version == columns.content_version,
        )
    )
    is_fact = (columns.state == MemoryState.FINAL, columns.source_seq.is_not(None), columns.key.is_(None))
    where = (exact_scope(memory_table, scope), IS_UNEXPIRED, *is_fact, ~is_read)
    statement = select(memory_table).where(*where).order_by(columns.created_at, columns.id).limit(limit)
    return [Memory.from_row(row) for row in (await tx.execute(statement)).mappings()]


async def save_extracted(tx: Transaction, versions: Mapping[str, int]) -> None:
    """Note which versions of memories were read, by id."""
    rows = [
        {"tenant": tx.tenant, "memory_id": id_, "content_version": versions[id_]} for id_ in sorted(versions)
    ]
    if rows:
        statement = upsert(dream_extracted_memory).values(rows)
        version = {"content_version": statement.excluded.content_version}
        await tx.execute(
            statement.on_conflict_do_update(index_elements=["tenant", "memory_id"], set_=version)
        )
