"""Every statement on the parts of business contexts. Functions take the caller's transaction, never commit.

Writers lock the tenant's text first (`lock`), because what they change and add depends on all of it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import uuid_utils
from sqlalchemy import delete, func, insert, select, text, update

from shared.foundation.origin import Origin
from shared.infra.postgres import advisory_lock_key, is_any_of, tenant_filter
from shared.infra.transaction import Transaction
from shared.memory.business_context.part import Row
from shared.memory.business_context.table import business_context_part as part_table

_MOVE = text(
    """
    UPDATE business_context_part p SET position = r.position, content = r.content
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (id text, position integer, content text)
    WHERE p.tenant = :tenant AND p.id = r.id
    """
)


async def lock(tx: Transaction) -> None:
    """Lock a tenant's business context against other writers until the transaction ends."""
    key = advisory_lock_key("business_context", tx.tenant)
    await tx.execute(select(func.pg_advisory_xact_lock(key)))


async def list_rows(tx: Transaction, *, lock_rows: bool = False) -> list[Row]:
    """Return all rows of a tenant's business context; with `lock_rows`, deletions of sources wait."""
    statement = select(part_table).where(tenant_filter(part_table, tx.tenant)).order_by(part_table.c.id)
    rows = await tx.execute(statement.with_for_update() if lock_rows else statement)
    return [Row.from_row(row) for row in rows.mappings()]


async def insert_row(
    tx: Transaction, position: int, content: str, origin: Origin, **provenance: str | None
) -> str:
    """Insert a part, with its provenance if it is a promoted line; return its id."""
    part_id = str(uuid_utils.uuid7())
    values = {"tenant": tx.tenant, "id": part_id, "position": position, "content": content}
    await tx.execute(insert(part_table).values(values | origin.columns() | provenance))
    return part_id


async def move_rows(tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> None:
    """Give rows, as {id, position, content}, their new positions and texts."""
    if rows:
        encoded = orjson.dumps([dict(row) for row in rows]).decode()
        await tx.execute(_MOVE, {"tenant": tx.tenant, "rows": encoded})


async def delete_rows(tx: Transaction, ids: Sequence[str]) -> None:
    """Delete rows."""
    if ids:
        where = (tenant_filter(part_table, tx.tenant), is_any_of(part_table.c.id, ids))
        await tx.execute(delete(part_table).where(*where))


async def keep_without_sessions(tx: Transaction, session_ids: Sequence[str]) -> None:
    """Let promoted lines stay although these sessions, which have expired, are about to be deleted."""
    if session_ids:
        where = (tenant_filter(part_table, tx.tenant), is_any_of(part_table.c.session_id, session_ids))
        await tx.execute(update(part_table).where(*where).values(session_id=None))
