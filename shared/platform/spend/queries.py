"""Every statement on charges, on the totals of sessions, and on tenants' own prices."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, delete, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.infra.postgres import is_any_of, tenant_filter
from shared.platform.spend.charge import Charge, ChargeState, columns_of
from shared.platform.spend.table import charge, price
from shared.platform.spend.usage import Usage


async def lock_ledger(connection: AsyncConnection, tenant: str, *, exclusive: bool = False) -> None:
    """Take part in booking until the transaction ends; `alone`, wait until nobody else does.

    A budget that is set counts the charges there are: none may slip in between, counted by nobody.
    """
    digest = hashlib.sha256(f"spend\x1f{tenant}".encode()).digest()
    key = int.from_bytes(digest[:8], "big", signed=True)
    lock = func.pg_advisory_xact_lock if exclusive else func.pg_advisory_xact_lock_shared
    await connection.execute(select(lock(key)))


async def add(connection: AsyncConnection, rows: Sequence[Mapping[str, Any]]) -> list[Charge]:
    """Insert charges and return them in their order."""
    if not rows:
        return []
    statement = insert(charge).values([dict(row) for row in rows]).returning(charge)
    found = {row["id"]: Charge.from_row(row) for row in (await connection.execute(statement)).mappings()}
    return [found[row["id"]] for row in rows]


async def of_session(
    connection: AsyncConnection, tenant: str, session_id: str, usage_ids: Collection[str]
) -> dict[str, Charge]:
    """Return a session's charges with these usage ids, by usage id."""
    mine = (tenant_filter(charge, tenant), charge.c.session_id == session_id)
    statement = select(charge).where(*mine, is_any_of(charge.c.usage_id, usage_ids))
    found = [Charge.from_row(row) for row in (await connection.execute(statement)).mappings()]
    return {one.usage_id or "": one for one in found}


async def lock(connection: AsyncConnection, tenant: str, ids: Collection[str]) -> list[Charge]:
    """Hold charges, in one order, and return them as they stand."""
    statement = select(charge).where(tenant_filter(charge, tenant), is_any_of(charge.c.id, ids))
    held = await connection.execute(statement.order_by(charge.c.id).with_for_update())
    return [Charge.from_row(row) for row in held.mappings()]


async def lock_expired_reservations(connection: AsyncConnection, tenant: str, limit: int) -> list[Charge]:
    """Hold reservations whose worker must be dead and return them; two sweeps share them out."""
    over = (charge.c.state == ChargeState.RESERVED, charge.c.reserved_until < func.now())
    statement = select(charge).where(tenant_filter(charge, tenant), *over).order_by(charge.c.id).limit(limit)
    held = await connection.execute(statement.with_for_update(skip_locked=True))
    return [Charge.from_row(row) for row in held.mappings()]


async def settle(
    connection: AsyncConnection, one: Charge, state: ChargeState, used: Usage, cost: Decimal | None
) -> None:
    """Put the actual, or what counts as it, in a reservation's place."""
    values = {**columns_of(used), "cost_usd": cost, "state": state, "reserved_until": None}
    await connection.execute(update(charge).where(*_is(one)).values(values))


async def remove(connection: AsyncConnection, one: Charge) -> None:
    """Take back a reservation of a call that was not made."""
    await connection.execute(delete(charge).where(*_is(one)))


def _is(one: Charge) -> tuple[ColumnElement[bool], ...]:
    return tenant_filter(charge, one.tenant), charge.c.id == one.id


async def detach_sessions(connection: AsyncConnection, tenant: str, session_ids: Collection[str]) -> None:
    """Let go of the usage ids of sessions that end: one that is opened anew begins its own."""
    mine = (tenant_filter(charge, tenant), is_any_of(charge.c.session_id, session_ids))
    await connection.execute(update(charge).where(*mine).values(usage_id=None))


async def anonymise_user(connection: AsyncConnection, tenant: str, user_id: str) -> int:
    """Take a user and their sessions off charges, which keep their amounts; return how many."""
    mine = (tenant_filter(charge, tenant), charge.c.user_id == user_id)
    # Held in the order in which settling holds them: else each could wait for the other.
    held = select(charge.c.id).where(*mine).order_by(charge.c.id).with_for_update()
    await connection.execute(held)
    nobody = {"user_id": None, "session_id": None, "usage_id": None}
    return (await connection.execute(update(charge).where(*mine).values(nobody))).rowcount


async def prices(
    connection: AsyncConnection, tenant: str, models: Collection[str] | None = None
) -> list[RowMapping]:
    """Return a tenant's own prices, of these models or all."""
    statement = select(price).where(tenant_filter(price, tenant))
    if models is not None:
        statement = statement.where(is_any_of(price.c.model, models))
    return list((await connection.execute(statement)).mappings())


async def set_price(
    connection: AsyncConnection, tenant: str, model: str, amounts: Mapping[str, Decimal]
) -> None:
    """Set a tenant's own price of a model, in USD per million tokens."""
    values = {"tenant": tenant, "model": model, **amounts}
    statement = upsert(price).values(values)
    newer = {**amounts, "updated_at": func.now()}
    await connection.execute(
        statement.on_conflict_do_update(index_elements=list(price.primary_key), set_=newer)
    )


async def delete_price(connection: AsyncConnection, tenant: str, model: str) -> bool:
    """Take a tenant's own price away; tell whether there was one."""
    mine = (tenant_filter(price, tenant), price.c.model == model)
    return (await connection.execute(delete(price).where(*mine))).rowcount > 0
