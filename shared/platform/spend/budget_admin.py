"""Set, read and take away budgets and prices: the whole tenant's business, so not for bound keys."""

from decimal import Decimal
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.foundation.stages import EMBED, ReasonCode
from shared.jobs import queries as job_queries
from shared.platform.resources import Resources
from shared.platform.spend import budget, budget_queries, prices, queries
from shared.platform.spend.budget import Budget, Period
from shared.platform.spend.charge import check_model
from shared.platform.spend.prices import Rates


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
    """Set one budget; what its window has spent so far counts from the start.

    Raises errors.Invalid without any limit, and errors.Forbidden for a bound key.
    """
    _check_unbound(caller)
    budget.check_scope(scope, caller.tenant)
    if limit_usd is None and limit_tokens is None:
        raise errors.Invalid("limit_usd", "or limit_tokens must be given")
    limits = {"limit_usd": limit_usd, "limit_tokens": limit_tokens, "allow_unpriced": allow_unpriced}
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        await queries.lock_ledger(connection, caller.tenant, exclusive=True)
        kept = await budget_queries.set_budget(connection, caller.tenant, scope, period, limits)
        waiting = await _wake(connection, caller.tenant)
    resources.publisher.wake(EMBED, waiting)
    return kept


async def delete_budget(
    resources: Resources, caller: Caller, scope: str, period: Period | None
) -> list[Budget]:
    """Take a scope's budgets away, of one period or both; none is no error."""
    _check_unbound(caller)
    budget.check_scope(scope, caller.tenant)
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        gone = await budget_queries.remove(connection, caller.tenant, scope, period)
        waiting = await _wake(connection, caller.tenant)
    resources.publisher.wake(EMBED, waiting)
    return gone


async def _wake(connection: AsyncConnection, tenant: str) -> int:
    """What was put off until a window turns may fit a budget that has changed."""
    return await job_queries.run_delayed_now(connection, tenant, EMBED, ReasonCode.OVER_BUDGET)


async def read_budgets(resources: Resources, caller: Caller, scope: str | None = None) -> list[Budget]:
    """Return the budgets that a caller may see: a key bound to an agent that agent's, one to a user none."""
    if scope is not None:
        budget.check_scope(scope, caller.tenant)
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        found = await budget_queries.list_budgets(
            connection, caller.tenant, None if scope is None else [scope]
        )
    return [one for one in found if _may_see(caller, one)]


def _may_see(caller: Caller, one: Budget) -> bool:
    if caller.user_id is not None:
        return False
    return caller.agent_id is None or one.scope == f"agent/{caller.agent_id}"


async def set_price(resources: Resources, caller: Caller, model: str, rates: Rates) -> Rates:
    """Set the tenant's own price of a model, in USD per million tokens; calls booked before keep theirs."""
    _check_unbound(caller)
    check_model(model)
    amounts = {"input": rates.input, "output": rates.output, "cached": rates.cached}
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        await queries.set_price(connection, caller.tenant, model, amounts)
        waiting = await _wake(connection, caller.tenant)
    resources.publisher.wake(EMBED, waiting)
    return rates


async def delete_price(resources: Resources, caller: Caller, model: str) -> bool:
    """Go back to the listed price of a model; tell whether the tenant had its own."""
    _check_unbound(caller)
    check_model(model)
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        return await queries.delete_price(connection, caller.tenant, model)


async def read_prices(resources: Resources, caller: Caller) -> list[dict[str, Any]]:
    """Return every price that counts for a tenant, as JSON."""
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        found = await prices.all_prices(connection, resources.settings, caller.tenant)
    return [rates.to_json(model) for model, rates in found.items()]


async def roll_over(resources: Resources, tenant: str) -> int:
    """Begin the windows that have turned, so that metrics show them as empty; return how many turned."""
    async with resources.postgres.for_tenant(tenant) as connection:
        turned = await budget_queries.lock_rolled_over(connection, tenant)
        await budget_queries.write(connection, turned)
    return len(turned)


def _check_unbound(caller: Caller) -> None:
    for field, value in caller.bindings.items():
        told = f"this key is bound to {field} '{value}'; budgets and prices are the whole tenant's"
        raise errors.Forbidden(told)
