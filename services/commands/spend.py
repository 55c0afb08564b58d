"""What was spent, in the terminal."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from rich.console import Console, JustifyMethod
from rich.table import Column, Table

from services.commands.resources import with_resources
from shared.foundation import validation
from shared.foundation.scope import Caller
from shared.platform.resources import Resources
from shared.platform.spend import budget_admin, money, report
from shared.platform.spend.budget import Budget
from shared.platform.spend.report import Criteria, Row

_SUMS = ("charges", "input_tokens", "output_tokens", "cached_tokens", "cost_usd", "unpriced", "estimated")


def show(
    tenant: str,
    by: str,
    asked: Mapping[str, str | None],
    since: datetime | None,
    until: datetime | None,
) -> None:
    """Print a table of sums, and one of the budgets if there are any."""
    groups = report.check_groups(by)
    wanted = {name: value for name, value in asked.items() if value is not None}
    criteria = Criteria(
        wanted,
        since and validation.check_time(since, "since"),
        until and validation.check_time(until, "until"),
    )
    rows, budgets = with_resources(lambda resources: _read(resources, tenant, groups, criteria))
    print_report(groups, rows, budgets)


async def _read(
    resources: Resources, tenant: str, groups: Sequence[str], criteria: Criteria
) -> tuple[list[Row], list[Budget]]:
    caller = Caller("command-line", tenant, frozenset({"read"}))
    rows = await report.report(resources, caller, groups, criteria)
    return rows, await budget_admin.read_budgets(resources, caller)


def print_report(groups: Sequence[str], rows: Sequence[Row], budgets: Sequence[Budget]) -> None:
    """Print what was read."""
    console = Console()
    console.print(_sums(groups, rows))
    if budgets:
        console.print(_limits(budgets))


def _sums(groups: Sequence[str], rows: Sequence[Row]) -> Table:
    sums = (_column(name.replace("_", " "), "right") for name in _SUMS)
    table = Table(*map(_column, groups), *sums)
    columns = [*(report.GROUPS[name].key or name for name in groups), *_SUMS]
    for row in rows:
        table.add_row(*(_cell(row[name]) for name in columns))
    return table


def _limits(budgets: Sequence[Budget]) -> Table:
    names = ("budget", "per", "used USD", "of", "used tokens", "of", "used")
    table = Table(*map(_column, names))
    for one in budgets:
        spent = (one.used_usd, one.limit_usd, one.used_tokens, one.limit_tokens)
        table.add_row(one.scope, one.period, *map(_cell, spent), f"{one.ratio:.0%}")
    return table


def _column(name: str, justify: JustifyMethod = "left") -> Column:
    """Return a column that breaks what is too wide for the terminal: a cut amount would be another."""
    return Column(name, justify=justify, overflow="fold")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return money.to_text(value) if isinstance(value, Decimal) else str(value)
