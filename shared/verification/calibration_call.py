"""Ask a judge while it is measured: at the expense of the installation, under a lease, and never a tenant's.

The upper bound of a call is booked before it, and corrected afterwards. What a worker that died had booked
counts. The pause of a model that refuses everything holds here, too, and such a call may end it.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta

from shared.foundation import errors
from shared.foundation.reply_schema import JsonSchema
from shared.infra.language_model import LanguageModel, ModelReply
from shared.jobs import counters as fleet_counters
from shared.jobs import model_guard
from shared.platform.resources import Resources
from shared.platform.spend import model_call, price_lists, usage
from shared.platform.spend.charge import Purpose
from shared.platform.spend.usage import Usage
from shared.verification import queries

PURPOSE = "judge_calibration"
"""What metrics call it: no tenant's call has this purpose."""


class LeaseLostError(Exception):
    """Somebody else measures the judge by now, or has measured it."""


async def complete(
    resources: Resources,
    model: LanguageModel,
    lease_token: str,
    system: str,
    user: str,
    schema: JsonSchema,
) -> ModelReply:
    """Return the judge's reply.

    Raises errors.OverBudget before the call if the week has no room for it, LeaseLostError, and
    errors.Unavailable or errors.InvalidModelReply as `metered_calls.complete` does.
    """
    model_call.check_prompt(model, system, user)
    bound = model_call.usage_bound(model, system, user)
    async with model_guard.guard(resources.postgres, resources.settings, Purpose.JUDGE, model.identity):
        week = await _reserve(resources, lease_token, bound)

        async def settle_failed(error: errors.Unavailable | errors.InvalidModelReply) -> None:
            is_made = model_call.was_made(error)
            await _settle(resources, model, week, bound, _usage_of(error) if is_made else Usage(0))

        reply = await model_call.call(model, system, user, schema, settle_failed)
        await _settle(resources, model, week, bound, usage.parse_or_none(reply.usage))
        return reply


def _usage_of(error: errors.Unavailable | errors.InvalidModelReply) -> Usage | None:
    reported: Mapping[str, object] | None = getattr(error, "usage", None)
    return usage.parse_or_none(reported or {})


async def _reserve(resources: Resources, lease_token: str, bound: Usage) -> date:
    """Book the upper bound and hold the lease for the time of the call; return the week that pays."""
    settings = resources.settings
    async with resources.postgres.across_tenants() as tx:
        if not await queries.renew(tx, lease_token, settings.job_lease):
            raise LeaseLostError
        week = await queries.reserve(tx, bound.total, settings.judge_calibration_tokens)
    if week is None:
        reason = "LOCI_JUDGE_CALIBRATION_TOKENS is used up for this week"
        raise errors.OverBudget(reason, _seconds_to_next_week())
    return week


def _seconds_to_next_week() -> float:
    now = datetime.now(UTC)
    monday = now.date() + timedelta(days=7 - now.weekday())
    return (datetime.combine(monday, time(), UTC) - now).total_seconds()


async def _settle(
    resources: Resources, model: LanguageModel, week: date, bound: Usage, actual: Usage | None
) -> None:
    """Correct what was booked. Without a reported usage, the upper bound stays."""
    used = bound if actual is None else actual
    async with resources.postgres.across_tenants() as tx:
        await queries.correct(tx, week, used.total - bound.total)
    if used.total:
        await count_spend(resources, model.model, used)


async def count_spend(resources: Resources, model: str, used: Usage) -> None:
    """Count tokens and their cost for `/metrics`."""
    rates = price_lists.find_rates(model, [price_lists.listed_prices(resources.settings)])
    name = f"{PURPOSE}:{model}"
    tokens = {"input": used.input, "output": used.output, "cached": used.cached}
    cost = price_lists.cost_of(rates, used)
    await fleet_counters.increment_detached(
        resources.postgres,
        {
            "spend_tokens": {f"{kind}:{name}": number for kind, number in tokens.items()},
            "spend_cost_usd": {name: float(cost or 0)},
        },
    )
