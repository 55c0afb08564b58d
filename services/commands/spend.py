"""Print spend reports and budgets in the terminal."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from rich.console import Console, JustifyMethod
from rich.table import Column, Table

from services.commands.resources import command_line_caller, with_resources
from shared.foundation import validation
from shared.foundation.optional_fields import without_none
from shared.platform.resources import Resources
from shared.platform.spend import budget_admin, money, report, report_queries
from shared.platform.spend.budget import Budget
from shared.platform.spend.report import Criteria, Row

_SUM_COLUMNS = (
    "charges",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "cost_usd",
    "unpriced",
    "estimated",
)


def show(
    tenant: str,
    by: str,
    parameters: Mapping[str, str | None],
    since: datetime | None,
    until: datetime | None,
) -> None:
    """Print a table of sums, and a table of the budgets if there are any.

    Raise errors.Invalid for an unknown group.
    """
    groups = report.check_groups(by)
    criteria = Criteria(
        without_none(**parameters),
        since and validation.check_time(since, "since"),
        until and validation.check_time(until, "until"),
    )
    rows, budgets = with_resources(lambda resources: _read(resources, tenant, groups, criteria))
    print_report(groups, rows, budgets)


async def _read(
    resources: Resources, tenant: str, groups: Sequence[str], criteria: Criteria
) -> tuple[list[Row], list[Budget]]:
    caller = command_line_caller(tenant)
    rows = await report.report(resources, caller, groups, criteria)
    return rows, await budget_admin.read_budgets(resources, caller)


def print_report(groups: Sequence[str], rows: Sequence[Row], budgets: Sequence[Budget]) -> None:
    """Print a spend report and the budgets."""
    console = Console()
    console.print(_sums_table(groups, rows))
    if budgets:
        console.print(_budgets_table(budgets))


def _sums_table(groups: Sequence[str], rows: Sequence[Row]) -> Table:
    sums = (_column(name.replace("_", " "), "right") for name in _SUM_COLUMNS)
    table = Table(*map(_column, groups), *sums)
    columns = [*(report_queries.GROUPS[name].key or name for name in groups), *_SUM_COLUMNS]
    for row in rows:
        table.add_row(*(_format_cell(row[name]) for name in columns))
    return table


def _budgets_table(budgets: Sequence[Budget]) -> Table:
    names = ("budget", "per", "used USD", "of", "used tokens", "of", "used")
    table = Table(*map(_column, names))
    for budget in budgets:
        amounts = (budget.used_usd, budget.limit_usd, budget.used_tokens, budget.limit_tokens)
        table.add_row(budget.scope, budget.period, *map(_format_cell, amounts), f"{budget.ratio:.0%}")
    return table


def _column(name: str, justify: JustifyMethod = "left") -> Column:
    """Return a column that wraps values that are too wide. A truncated amount would be a wrong amount."""
    return Column(name, justify=justify, overflow="fold")


def _format_cell(value: Any) -> str:
    if value is None:
        return ""
    return money.to_text(value) if isinstance(value, Decimal) else str(value)
