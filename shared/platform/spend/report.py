"""Report what was spent, summed up by agent, session, user, purpose, model and day (UTC).

Reservations are excluded until they are settled, because they are only an upper bound. The cost of a
group in which no charge has a price is unknown; `unpriced` counts the charges missing from a sum.
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
    """Which charges count: `filters` maps columns to values; `since` is inclusive, `until` exclusive."""

    filters: Mapping[str, str]
    since: datetime | None = None
    until: datetime | None = None


def check_groups(group_by: str | None) -> list[str]:
    """Parse a list such as `agent,day`. Without any name the report is one row.

    Raise errors.Invalid for an unknown name.
    """
    names = list(dict.fromkeys(part.strip() for part in (group_by or "").split(",") if part.strip()))
    for name in names:
        if name not in GROUPS:
            raise errors.Invalid("group_by", f"must be some of {', '.join(GROUPS)}, separated by commas")
    return names


async def report(
    resources: Resources, caller: Caller, groups: Sequence[str], criteria: Criteria
) -> list[Row]:
    """Return sums by group, the most expensive first. A bound key sees only the charges it is bound to."""
    columns = [GROUPS[name] for name in groups]
    conditions = [tenant_filter(charge, caller.tenant), charge.c.state != ChargeState.RESERVED]
    filters = {**criteria.filters, **caller.binding_filter}
    conditions += [charge.c[name] == value for name, value in filters.items()]
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
    """Return rows as JSON. Costs keep all their digits."""
    return [row | {"cost_usd": money.to_json_number(row["cost_usd"])} for row in rows]


def as_csv(groups: Sequence[str], rows: Sequence[Row]) -> str:
    """Return rows as CSV (RFC 4180) with a header. An unknown cost is an empty cell."""
    names = [*(GROUPS[name].key or name for name in groups), *(column.key or "" for column in _SUMS)]
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(names)
    writer.writerows([_format_cell(row[name]) for name in names] for row in rows)
    return out.getvalue()


def _format_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Decimal):
        return money.to_text(value)
    text = str(value)
    # A spreadsheet would execute a name that begins like this as a formula.
    return f"'{text}" if text[:1] in {"=", "+", "-", "@"} else text
