"""What was spent, added up by agent, session, user, purpose, model and day (UTC).

Reservations are left out until they are settled: they are what may be spent. A group in which no
charge has a price has no cost, and `unpriced` says how many charges a sum lacks.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Date, cast, func, select

from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.infra.postgres import tenant_filter
from shared.platform.resources import Resources
from shared.platform.spend import money
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
_SUMS: list[ColumnElement[Any]] = [
    func.count().label("charges"),
    *(
        cast(func.sum(charge.c[name]), BigInteger).label(name)
        for name in ("input_tokens", "output_tokens", "cached_tokens")
    ),
    func.sum(charge.c.cost_usd).label("cost_usd"),
    func.count().filter(charge.c.cost_usd.is_(None)).label("unpriced"),
    func.count().filter(charge.c.state == ChargeState.ESTIMATED).label("estimated"),
]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Criteria:
    """Which charges count: `wanted` maps columns to values, the times are from (inclusive) and to."""

    wanted: Mapping[str, str]
    since: datetime | None = None
    until: datetime | None = None


def check_groups(told: str | None) -> list[str]:
    """Read a list such as `agent,day`; none means the whole in one row."""
    names = list(dict.fromkeys(part.strip() for part in (told or "").split(",") if part.strip()))
    for name in names:
        if name not in GROUPS:
            raise errors.Invalid("group_by", f"must be some of {', '.join(GROUPS)}, separated by commas")
    return names


async def report(
    resources: Resources, caller: Caller, groups: Sequence[str], criteria: Criteria
) -> list[Row]:
    """Return sums by group, the most expensive first; a bound key's own charges only."""
    columns = [GROUPS[name] for name in groups]
    conditions = [tenant_filter(charge, caller.tenant), charge.c.state != ChargeState.RESERVED]
    bound = {"agent_id": caller.agent_id, "user_id": caller.user_id}
    for name, value in {**criteria.wanted, **{k: v for k, v in bound.items() if v is not None}}.items():
        conditions.append(charge.c[name] == value)
    if criteria.since is not None:
        conditions.append(charge.c.created_at >= criteria.since)
    if criteria.until is not None:
        conditions.append(charge.c.created_at < criteria.until)
    statement = select(*columns, *_SUMS).where(*conditions).group_by(*columns).having(func.count() > 0)
    order = [func.sum(charge.c.cost_usd).desc().nulls_last(), func.count().desc(), *columns]
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        rows = await connection.execute(statement.order_by(*order).limit(MAX_ROWS))
        return [dict(row) for row in rows.mappings()]


def as_json(rows: Sequence[Row]) -> list[Row]:
    """Return rows as JSON, costs with their own digits."""
    return [row | {"cost_usd": money.to_json_number(row["cost_usd"])} for row in rows]


def as_csv(groups: Sequence[str], rows: Sequence[Row]) -> str:
    """Return rows as CSV (RFC 4180) under a header, an unknown cost being empty."""
    names = [*(GROUPS[name].key or name for name in groups), *(column.key or "" for column in _SUMS)]
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(names)
    writer.writerows([_cell(row[name]) for name in names] for row in rows)
    return out.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Decimal):
        return money.to_text(value)
    text = str(value)
    # A spreadsheet would run a name that begins so as a formula.
    return f"'{text}" if text[:1] in {"=", "+", "-", "@"} else text
