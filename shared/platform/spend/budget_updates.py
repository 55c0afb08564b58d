"""Update budgets when charges change, in the transaction that changes the charges.

A charge counts in the window in which it was created. A charge of yesterday that is settled after
midnight therefore does not change a daily budget, whose new window has begun.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog

from shared.foundation.config import Settings
from shared.infra.transaction import Transaction
from shared.platform.spend import budget_queries
from shared.platform.spend.budget import ZERO, ZERO_AMOUNT, Amount, Budget
from shared.platform.spend.charge import Charge, budget_scopes

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class BudgetChange:
    """The amounts that a charge adds to the budgets of its scopes; they may be negative."""

    scopes: tuple[str, ...]
    charged_at: datetime
    used: Amount
    reserved: Amount


def change_for_new_charge(charge: Charge) -> BudgetChange:
    """Return the change of a new charge that is settled at once."""
    return change_for_charge(charge, budget_queries.amount_of(charge), ZERO_AMOUNT)


def change_for_charge(charge: Charge, used: Amount, reserved: Amount) -> BudgetChange:
    """Return the change of a charge by these used and reserved amounts."""
    return BudgetChange(budget_scopes(charge.agent_id, charge.purpose), charge.created_at, used, reserved)


def subtract(minuend: Amount, subtrahend: Amount) -> Amount:
    """Return the difference of two amounts. An unknown cost counts as zero."""
    return Amount((minuend.usd or ZERO) - (subtrahend.usd or ZERO), minuend.tokens - subtrahend.tokens)


async def apply_changes(tx: Transaction, settings: Settings, changes: Sequence[BudgetChange]) -> None:
    """Apply changes to all budgets that they concern, and log those that reach the alert threshold."""
    scopes = {scope for change in changes for scope in change.scopes}
    before = await budget_queries.lock_budgets(tx, scopes) if scopes else []
    await save_budgets(tx, settings, before, [_add_changes(budget, changes) for budget in before])


def _add_changes(budget: Budget, changes: Sequence[BudgetChange]) -> Budget:
    for change in changes:
        if budget.scope in change.scopes and change.charged_at >= budget.window_started_at:
            budget = budget.with_added(change.used, change.reserved)
    return budget


async def save_budgets(
    tx: Transaction, settings: Settings, before: Sequence[Budget], after: Sequence[Budget]
) -> None:
    """Write the budgets that have changed, and log those that reach the alert threshold."""
    await budget_queries.write(tx, [new for old, new in zip(before, after, strict=True) if new != old])
    for old, new in zip(before, after, strict=True):
        if old.ratio < settings.budget_alert <= new.ratio:
            log.warning("budget_alert", tenant=new.tenant, scope=new.scope, period=new.period, used=new.ratio)
