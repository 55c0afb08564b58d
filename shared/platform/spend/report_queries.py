"""The statement of spend reports: sums of charges by group."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Date, cast, func, select

from shared.infra.postgres import tenant_filter
from shared.infra.transaction import Transaction
from shared.platform.spend.charge import ChargeState
from shared.platform.spend.table import charge

MAX_ROWS = 10_000
_DAY = cast(func.timezone("UTC", charge.c.created_at), Date)
GROUPS: dict[str, ColumnElement[Any]] = {
    "agent": charge.c.agent_id.label("agent_id"),
    "session": charge.c.session_id.label("session_id"),
    "user": charge.c.user_id.label("user_id"),
    "purpose": charge.c.purpose.label("purpose"),
    "model": charge.c.model.label("model"),
    "day": _DAY.label("day"),
}
SUMS: list[ColumnElement[Any]] = [
    func.count().label("charges"),
    *(
        cast(func.sum(charge.c[name]), BigInteger).label(name)
        for name in ("input_tokens", "output_tokens", "cached_tokens")
    ),
    func.sum(charge.c.cost_usd).label("cost_usd"),
    func.count().filter(charge.c.cost_usd.is_(None)).label("unpriced"),
    func.count().filter(charge.c.state == ChargeState.ESTIMATED).label("estimated"),
]


async def sum_charges(
    tx: Transaction,
    groups: Sequence[str],
    filters: Mapping[str, str],
    since: datetime | None,
    until: datetime | None,
) -> list[dict[str, Any]]:
    """Return at most MAX_ROWS sums by group, the most expensive first, over the charges of a tenant.

    `groups` are names of GROUPS, and `filters` maps columns to values. `since` is inclusive, `until`
    exclusive. Reservations are excluded.
    """
    columns = [GROUPS[name] for name in groups]
    conditions = [tenant_filter(charge, tx.tenant), charge.c.state != ChargeState.RESERVED]
    conditions += [charge.c[name] == value for name, value in filters.items()]
    if since is not None:
        conditions.append(charge.c.created_at >= since)
    if until is not None:
        conditions.append(charge.c.created_at < until)
    statement = select(*columns, *SUMS).where(*conditions).group_by(*columns).having(func.count() > 0)
    order = [func.sum(charge.c.cost_usd).desc().nulls_last(), func.count().desc(), *columns]
    rows = await tx.execute(statement.order_by(*order).limit(MAX_ROWS))
    return [dict(row) for row in rows.mappings()]
