"""Every statement on budgets.

A transaction that changes budgets locks all that apply in the order of their keys, so that two
transactions can't wait for each other.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Text,
    and_,
    any_,
    bindparam,
    case,
    delete,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from shared.foundation.ids import new_record_id
from shared.infra.postgres import is_any_of, tenant_filter
from shared.infra.transaction import Transaction
from shared.jobs import counters as fleet_counters
from shared.platform.spend.budget import ZERO, Amount, Budget, Period
from shared.platform.spend.charge import Charge, ChargeState
from shared.platform.spend.table import budget as budget_table
from shared.platform.spend.table import charge as charge_table

USED_RATIO_METRIC = "budget_used_ratio"
_WINDOW_NOW = func.date_trunc(budget_table.c.period, func.now(), "UTC").label("window_now")


async def list_budgets(tx: Transaction, scopes: Collection[str] | None = None) -> list[Budget]:
    """Return a tenant's budgets in their current windows, of these scopes or of all."""
    return await _read(tx, scopes, lock=False)


async def lock_budgets(tx: Transaction, scopes: Collection[str] | None = None) -> list[Budget]:
    """Lock a tenant's budgets, of these scopes or of all, and return them in their current windows."""
    return await _read(tx, scopes, lock=True)


async def lock_rolled_over(tx: Transaction) -> list[Budget]:
    """Lock the budgets whose stored window has ended, and return them in their current windows."""
    has_ended = budget_table.c.window_started_at < func.date_trunc(budget_table.c.period, func.now(), "UTC")
    statement = select(*budget_table.c, _WINDOW_NOW).where(tenant_filter(budget_table, tx.tenant), has_ended)
    ordered = statement.order_by(budget_table.c.scope, budget_table.c.period)
    rows = await tx.execute(ordered.with_for_update(skip_locked=True))
    return [Budget.from_row(row) for row in rows.mappings()]


_LOCK_OF_SCOPES = (
    select(*budget_table.c, _WINDOW_NOW)
    .where(
        budget_table.c.tenant == bindparam("tenant"),
        budget_table.c.scope == any_(bindparam("scopes", type_=ARRAY(Text))),
    )
    .order_by(budget_table.c.scope, budget_table.c.period)
    .with_for_update()
)


async def _read(tx: Transaction, scopes: Collection[str] | None, *, lock: bool) -> list[Budget]:
    if lock and scopes is not None:  # as each call of a model does
        values = {"tenant": tx.tenant, "scopes": sorted(set(scopes))}
        return [Budget.from_row(row) for row in await tx.fetch(_LOCK_OF_SCOPES, values)]
    statement = select(*budget_table.c, _WINDOW_NOW).where(tenant_filter(budget_table, tx.tenant))
    if scopes is not None:
        statement = statement.where(is_any_of(budget_table.c.scope, sorted(set(scopes))))
    ordered = statement.order_by(budget_table.c.scope, budget_table.c.period)
    rows = await tx.execute(ordered.with_for_update() if lock else ordered)
    return [Budget.from_row(row) for row in rows.mappings()]


async def write(tx: Transaction, budgets: Sequence[Budget]) -> None:
    """Write the counters of locked budgets, and publish their ratios for `/metrics`."""
    for budget in budgets:
        statement = update(budget_table).where(*_is_budget(budget)).values(budget.counter_columns())
        await tx.execute(statement)
        await fleet_counters.set_gauge(tx, USED_RATIO_METRIC, _metric_label(budget), budget.ratio)


def _is_budget(budget: Budget) -> tuple[ColumnElement[bool], ...]:
    return (
        tenant_filter(budget_table, budget.tenant),
        budget_table.c.scope == budget.scope,
        budget_table.c.period == budget.period,
    )


def _metric_label(budget: Budget) -> str:
    return f"{budget.scope.partition('/')[0]}:{budget.period}:{budget.id}"


async def set_budget(tx: Transaction, scope: str, period: Period, limits: Mapping[str, Any]) -> Budget:
    """Set a budget's limits, and count what was spent and reserved in its current window so far.

    `limits` has limit_usd, limit_tokens and allow_unpriced. The ledger must be locked exclusively
    (`queries.lock_ledger`).
    """
    now = func.date_trunc(period.value, func.now(), "UTC")
    key = {"tenant": tx.tenant, "scope": scope, "period": period}
    statement = upsert(budget_table).values(
        {**key, "id": new_record_id(), **limits, "window_started_at": now}
    )
    columns = {**limits, "updated_at": func.now()}
    await tx.execute(
        statement.on_conflict_do_update(index_elements=list(budget_table.primary_key), set_=columns)
    )
    locked_budgets = await lock_budgets(tx, [scope])
    budget = next(budget for budget in locked_budgets if budget.period is period)
    used, reserved = await _sum_charges(tx, budget)
    empty = {"used_usd": ZERO, "used_tokens": 0, "reserved_usd": ZERO, "reserved_tokens": 0}
    counted_budget = budget.model_copy(update=empty).with_added(used, reserved)
    await write(tx, [counted_budget])
    return counted_budget


async def _sum_charges(tx: Transaction, budget: Budget) -> tuple[Amount, Amount]:
    """Return the sums of the used and of the reserved charges in a budget's window."""
    kind, _, name = budget.scope.partition("/")
    columns = charge_table.c
    where = [tenant_filter(charge_table, budget.tenant), columns.created_at >= budget.window_started_at]
    if kind != "tenant":
        where.append({"agent": columns.agent_id, "purpose": columns.purpose}[kind] == name)
    tokens = columns.input_tokens + columns.output_tokens + columns.cached_tokens
    is_reserved = columns.state == ChargeState.RESERVED
    sums = [
        func.coalesce(func.sum(case((condition, column))), 0)
        for condition in (~is_reserved, is_reserved)
        for column in (columns.cost_usd, tokens)
    ]
    row = (await tx.execute(select(*sums).where(*where))).one()
    return Amount(row[0], int(row[1])), Amount(row[2], int(row[3]))


async def remove(tx: Transaction, scope: str, period: Period | None) -> list[Budget]:
    """Delete the budgets of a scope, of one period or both, and return them."""
    locked_budgets = await lock_budgets(tx, [scope])
    budgets = [budget for budget in locked_budgets if period in (None, budget.period)]
    if budgets:
        conditions = [and_(*_is_budget(budget)) for budget in budgets]
        await tx.execute(delete(budget_table).where(or_(*conditions)))
        labels = [_metric_label(budget) for budget in budgets]
        await fleet_counters.delete_counter(tx, USED_RATIO_METRIC, labels)
    return budgets


def amount_of(charge: Charge) -> Amount:
    """Return the amount that a charge adds to a budget."""
    return Amount(charge.cost_usd, charge.usage.total)
