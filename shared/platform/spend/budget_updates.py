"""Let budgets follow charges, in the charges' own transaction.

A charge counts in the window in which it was made: what is settled after midnight is yesterday's, so
it no longer touches a budget whose window has turned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation.config import Settings
from shared.platform.spend import budget_queries
from shared.platform.spend.budget import ZERO, ZERO_AMOUNT, Amount, Budget
from shared.platform.spend.charge import Charge, budget_scopes

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class BudgetChange:
    """What the budgets of some scopes have more of since a moment (or less, where it is negative)."""

    scopes: tuple[str, ...]
    at: datetime
    used: Amount
    reserved: Amount


def change_for_new_charge(one: Charge) -> BudgetChange:
    """Return the movement of a charge that is settled from the first."""
    return BudgetChange(
        budget_scopes(one.agent_id, one.purpose), one.created_at, budget_queries.amount_of(one), ZERO_AMOUNT
    )


def change_for_charge(before: Charge, used: Amount, reserved: Amount) -> BudgetChange:
    """Return the movement of a charge that was there before."""
    return BudgetChange(budget_scopes(before.agent_id, before.purpose), before.created_at, used, reserved)


def subtract(left: Amount, right: Amount) -> Amount:
    """Return the difference of two amounts, an unknown price counting as none."""
    return Amount((left.usd or ZERO) - (right.usd or ZERO), left.tokens - right.tokens)


async def apply_changes(
    connection: AsyncConnection, settings: Settings, tenant: str, movements: Sequence[BudgetChange]
) -> None:
    """Count movements in all budgets that they concern; warn of those that reach the alert."""
    scopes = {scope for movement in movements for scope in movement.scopes}
    before = await budget_queries.lock_budgets(connection, tenant, scopes) if scopes else []
    await save_budgets(connection, settings, before, [_after(one, movements) for one in before])


def _after(one: Budget, movements: Sequence[BudgetChange]) -> Budget:
    for movement in movements:
        if one.scope in movement.scopes and movement.at >= one.window_started_at:
            one = one.with_added(movement.used, movement.reserved)
    return one


async def save_budgets(
    connection: AsyncConnection, settings: Settings, before: Sequence[Budget], after: Sequence[Budget]
) -> None:
    """Write budgets that have changed."""
    await budget_queries.write(
        connection, [new for old, new in zip(before, after, strict=True) if new != old]
    )
    for old, new in zip(before, after, strict=True):
        if old.ratio < settings.budget_alert <= new.ratio:
            log.warning("budget_alert", tenant=new.tenant, scope=new.scope, period=new.period, used=new.ratio)
