"""Set, read and delete budgets and prices.

They belong to the whole tenant, so a key that is bound to an agent or a user can't change them.
"""

from decimal import Decimal
from typing import Any

from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.foundation.stages import EMBED, ENRICH, SUMMARIZE, SUMMARIZE_SKILL, ReasonCode
from shared.jobs import queries as job_queries
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area, Owner
from shared.platform.resources import Resources
from shared.platform.spend import budget, budget_queries, prices, queries
from shared.platform.spend.budget import Budget, Period
from shared.platform.spend.charge import check_model
from shared.platform.spend.price_lists import Rates
from shared.records.transaction import RecordTransaction


async def set_budget(
    resources: Resources,
    caller: Caller,
    scope: str,
    period: Period,
    *,
    limit_usd: Decimal | None,
    limit_tokens: int | None,
    allow_unpriced: bool,
) -> Budget:
    """Set one budget. What was spent in its current window counts at once.

    Raise errors.Invalid if no limit is given, and errors.Forbidden for a bound key.
    """
    rights.require_area(caller, Area.TENANT, Action.WRITE)
    budget.check_scope(scope, caller.tenant)
    if limit_usd is None and limit_tokens is None:
        raise errors.Invalid("limit_usd", "or limit_tokens must be given")
    limits = {"limit_usd": limit_usd, "limit_tokens": limit_tokens, "allow_unpriced": allow_unpriced}
    async with resources.transaction(caller.tenant) as tx:
        await queries.lock_ledger(tx, exclusive=True)
        new_budget = await budget_queries.set_budget(tx, scope, period, limits)
        await _run_delayed_jobs_now(tx)
    return new_budget


async def delete_budget(
    resources: Resources, caller: Caller, scope: str, period: Period | None
) -> list[Budget]:
    """Delete a scope's budgets, of one period or both, and return them. It is no error if there is none.

    Raise errors.Forbidden for a bound key.
    """
    rights.require_area(caller, Area.TENANT, Action.WRITE)
    budget.check_scope(scope, caller.tenant)
    async with resources.transaction(caller.tenant) as tx:
        deleted_budgets = await budget_queries.remove(tx, scope, period)
        await _run_delayed_jobs_now(tx)
    return deleted_budgets


async def _run_delayed_jobs_now(tx: RecordTransaction) -> None:
    """Make the jobs due that a budget had delayed until its next window.

    They may fit the budget or the price that has changed.
    """
    for stage in (ENRICH, SUMMARIZE, SUMMARIZE_SKILL):
        await job_queries.run_delayed_now(tx, stage, ReasonCode.OVER_BUDGET)
    tx.wake(EMBED, await job_queries.run_delayed_now(tx, EMBED, ReasonCode.OVER_BUDGET))


async def read_budgets(resources: Resources, caller: Caller, scope: str | None = None) -> list[Budget]:
    """Return the budgets that a caller may see.

    A key that is bound to an agent sees only that agent's budgets; one that is bound to a user sees none.
    """
    if scope is not None:
        budget.check_scope(scope, caller.tenant)
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        scopes = None if scope is None else [scope]
        budgets = await budget_queries.list_budgets(tx, scopes)
    return [candidate for candidate in budgets if _may_see(caller, candidate)]


def _may_see(caller: Caller, candidate: Budget) -> bool:
    kind, _, name = candidate.scope.partition("/")
    owner = Owner(agent_id=name if kind == "agent" else None)
    return rights.allows(caller, Area.AGENT_BUDGETS, Action.READ, owner)


async def set_price(resources: Resources, caller: Caller, model: str, rates: Rates) -> Rates:
    """Set the tenant's own price of a model, in USD per million tokens.

    Calls that were booked before keep their cost. Raise errors.Forbidden for a bound key.
    """
    rights.require_area(caller, Area.TENANT, Action.WRITE)
    check_model(model)
    amounts = {"input": rates.input, "output": rates.output, "cached": rates.cached}
    async with resources.transaction(caller.tenant) as tx:
        await queries.set_price(tx, model, amounts)
        await _run_delayed_jobs_now(tx)
    return rates


async def delete_price(resources: Resources, caller: Caller, model: str) -> bool:
    """Delete the tenant's own price of a model, so that the listed one applies.

    Return whether there was one. Raise errors.Forbidden for a bound key.
    """
    rights.require_area(caller, Area.TENANT, Action.WRITE)
    check_model(model)
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        return await queries.delete_price(tx, model)


async def read_prices(resources: Resources, caller: Caller) -> list[dict[str, Any]]:
    """Return every price that applies to a tenant, as JSON."""
    rights.require_area(caller, Area.TENANT, Action.READ)
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        rates_by_model = await prices.all_prices(tx, resources.settings)
    return [rates.to_json(model) for model, rates in rates_by_model.items()]


async def roll_over(resources: Resources, tenant: str) -> int:
    """Begin the new windows of budgets whose window has ended, so that metrics show them as empty.

    Return how many budgets were rolled over.
    """
    async with resources.postgres.for_tenant(tenant) as tx:
        budgets = await budget_queries.lock_rolled_over(tx)
        await budget_queries.write(tx, budgets)
    return len(budgets)
