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

from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.platform.resources import Resources
from shared.platform.spend import money, report_queries
from shared.platform.spend.report_queries import GROUPS, SUMS

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
    filters = {**criteria.filters, **caller.binding_filter}
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        return await report_queries.sum_charges(tx, groups, filters, criteria.since, criteria.until)


def as_json(rows: Sequence[Row]) -> list[Row]:
    """Return rows as JSON. Costs keep all their digits."""
    return [row | {"cost_usd": money.to_json_number(row["cost_usd"])} for row in rows]


def as_csv(groups: Sequence[str], rows: Sequence[Row]) -> str:
    """Return rows as CSV (RFC 4180) with a header. An unknown cost is an empty cell."""
    names = [*(GROUPS[name].key or name for name in groups), *(column.key or "" for column in SUMS)]
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
