"""Every statement on budgets. Whoever counts locks all that apply in the order of their keys."""

import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, case, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.infra.postgres import is_any_of, tenant_filter
from shared.jobs import counters as fleet_counters
from shared.platform.spend.budget import ZERO, Amount, Budget, Period
from shared.platform.spend.charge import Charge, ChargeState
from shared.platform.spend.table import budget, charge

USED_RATIO_METRIC = "budget_used_ratio"
_WINDOW_NOW = func.date_trunc(budget.c.period, func.now(), "UTC").label("window_now")


async def list_budgets(
    connection: AsyncConnection, tenant: str, scopes: Collection[str] | None = None
) -> list[Budget]:
    """Return a tenant's budgets in the windows of now, of these scopes or all."""
    return await _read(connection, tenant, scopes, lock=False)


async def lock_budgets(
    connection: AsyncConnection, tenant: str, scopes: Collection[str] | None = None
) -> list[Budget]:
    """Hold a tenant's budgets and return them in the windows of now."""
    return await _read(connection, tenant, scopes, lock=True)


async def lock_rolled_over(connection: AsyncConnection, tenant: str) -> list[Budget]:
    """Hold the budgets whose row is still of an earlier window, and return them in that of now."""
    over = budget.c.window_started_at < func.date_trunc(budget.c.period, func.now(), "UTC")
    statement = select(*budget.c, _WINDOW_NOW).where(tenant_filter(budget, tenant), over)
    rows = await connection.execute(
        statement.order_by(budget.c.scope, budget.c.period).with_for_update(skip_locked=True)
    )
    return [Budget.from_row(row) for row in rows.mappings()]


async def _read(
    connection: AsyncConnection, tenant: str, scopes: Collection[str] | None, *, lock: bool
) -> list[Budget]:
    statement = select(*budget.c, _WINDOW_NOW).where(tenant_filter(budget, tenant))
    if scopes is not None:
        statement = statement.where(is_any_of(budget.c.scope, sorted(set(scopes))))
    ordered = statement.order_by(budget.c.scope, budget.c.period)
    rows = await connection.execute(ordered.with_for_update() if lock else ordered)
    return [Budget.from_row(row) for row in rows.mappings()]


async def write(connection: AsyncConnection, budgets: Sequence[Budget]) -> None:
    """Keep the counters of budgets that are held, and show them to `/metrics`."""
    for one in budgets:
        await connection.execute(update(budget).where(*_is(one)).values(one.counter_columns()))
        await fleet_counters.set_gauge(connection, USED_RATIO_METRIC, _label(one), one.ratio)


def _is(one: Budget) -> tuple[ColumnElement[bool], ...]:
    return tenant_filter(budget, one.tenant), budget.c.scope == one.scope, budget.c.period == one.period


def _label(one: Budget) -> str:
    return f"{one.scope.partition('/')[0]}:{one.period}:{one.id}"


async def set_budget(
    connection: AsyncConnection, tenant: str, scope: str, period: Period, limits: Mapping[str, Any]
) -> Budget:
    """Set a budget {limit_usd, limit_tokens, allow_unpriced} and count what its window has seen so far.

    The books must be held alone: see `store.hold_books`.
    """
    now = func.date_trunc(period.value, func.now(), "UTC")
    key = {"tenant": tenant, "scope": scope, "period": period}
    statement = upsert(budget).values({**key, "id": secrets.token_hex(6), **limits, "window_started_at": now})
    changed = {**limits, "updated_at": func.now()}
    await connection.execute(
        statement.on_conflict_do_update(index_elements=list(budget.primary_key), set_=changed)
    )
    held = next(one for one in await lock_budgets(connection, tenant, [scope]) if one.period is period)
    used, reserved = await _counted(connection, held)
    empty = {"used_usd": ZERO, "used_tokens": 0, "reserved_usd": ZERO, "reserved_tokens": 0}
    counted = held.model_copy(update=empty).with_added(used, reserved)
    await write(connection, [counted])
    return counted


async def _counted(connection: AsyncConnection, one: Budget) -> tuple[Amount, Amount]:
    """Sum up the charges of a budget's window: what is used, what is reserved."""
    kind, _, name = one.scope.partition("/")
    mine = [tenant_filter(charge, one.tenant), charge.c.created_at >= one.window_started_at]
    if kind != "tenant":
        mine.append({"agent": charge.c.agent_id, "purpose": charge.c.purpose}[kind] == name)
    tokens = charge.c.input_tokens + charge.c.output_tokens + charge.c.cached_tokens
    held = charge.c.state == ChargeState.RESERVED
    sums = [
        func.coalesce(func.sum(case((condition, column))), 0)
        for condition in (~held, held)
        for column in (charge.c.cost_usd, tokens)
    ]
    row = (await connection.execute(select(*sums).where(*mine))).one()
    return Amount(row[0], int(row[1])), Amount(row[2], int(row[3]))


async def remove(connection: AsyncConnection, tenant: str, scope: str, period: Period | None) -> list[Budget]:
    """Take budgets of a scope away, of one period or both; return them."""
    gone = [one for one in await lock_budgets(connection, tenant, [scope]) if period in (None, one.period)]
    places = [and_(*_is(one)) for one in gone]
    if places:
        await connection.execute(delete(budget).where(or_(*places)))
        await fleet_counters.delete_counter(connection, USED_RATIO_METRIC, [_label(one) for one in gone])
    return gone


def amount_of(one: Charge) -> Amount:
    """Return a charge as budgets count it."""
    return Amount(one.cost_usd, one.usage.total)
