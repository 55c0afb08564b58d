"""Reserve before a call, settle after it: money is counted when it may be spent, not when it is known.

    reserve ──▶ the call ──▶ settled    the provider said what was used
                   ├───────▶ lost       the answer went astray, or told no usage: the most it can be
                   ├───────▶ (removed)  refused, or never asked: nothing was used
                   └───────▶ lost       its worker died: the sweep settles it when its time is over

Settling is a transaction of its own, right after the answer: the money is spent even if the answer
is later thrown away because the claim was lost, and a crash between the two must not forget it. An
answer that comes after the sweep gave it up still corrects the charge. Several reservations of one
tenant go in one transaction: an embedding call serves many records.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import uuid_utils
from sqlalchemy import func
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation import errors
from shared.foundation.config import Settings
from shared.jobs import counters as fleet_counters
from shared.platform.resources import Resources
from shared.platform.spend import budget_queries, budget_updates, prices, queries
from shared.platform.spend.budget import ZERO_AMOUNT, Amount, Budget, Period
from shared.platform.spend.budget_queries import amount_of
from shared.platform.spend.budget_updates import BudgetChange, change_for_charge, subtract
from shared.platform.spend.charge import Charge, ChargeState, Payer, budget_scopes, columns_of
from shared.platform.spend.prices import Rates
from shared.platform.spend.usage import Usage

_OVERDUE = 500
BudgetBalances = dict[tuple[str, Period], Budget]


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A call that somebody wants to make: who pays, and the most that it can use."""

    payer: Payer
    model: str
    bound: Usage


@dataclass(frozen=True, slots=True)
class Reservation:
    """A call that may be made."""

    payer: Payer
    model: str
    bound: Usage
    rates: Rates | None
    charge_id: str

    @property
    def max_cost(self) -> Decimal | None:
        """What the call can cost at most; None where the model has no price."""
        return None if self.rates is None else self.rates.max_cost(self.bound)


async def reserve(
    resources: Resources, tenant: str, wishes: Sequence[CallRequest]
) -> list[Reservation | errors.OverBudget]:
    """Reserve the most that each of a tenant's calls can cost, or say which budget forbids it."""
    async with resources.postgres.for_tenant(tenant) as connection:
        await queries.lock_ledger(connection, tenant)
        models = {wish.model for wish in wishes}
        rates = await prices.effective_prices(connection, resources.settings, tenant, models)
        judged = await _judged(connection, resources.settings, tenant, wishes, rates)
        held = [one for one in judged if isinstance(one, Reservation)]
        await queries.add(connection, [_row(resources.settings, one) for one in held])
    pairs = zip(wishes, judged, strict=True)
    await _tell_refusals(resources, [wish for wish, one in pairs if isinstance(one, errors.OverBudget)])
    return judged


async def _judged(
    connection: AsyncConnection,
    settings: Settings,
    tenant: str,
    wishes: Sequence[CallRequest],
    rates: Mapping[str, Rates],
) -> list[Reservation | errors.OverBudget]:
    scopes = {scope for wish in wishes for scope in _scopes(wish)}
    before = await budget_queries.lock_budgets(connection, tenant, scopes)
    now: BudgetBalances = {(one.scope, one.period): one for one in before}
    judged = [_reserve_one(wish, rates.get(wish.model), now) for wish in wishes]
    await budget_updates.save_budgets(connection, settings, before, list(now.values()))
    return judged


def _scopes(wish: CallRequest) -> tuple[str, ...]:
    return budget_scopes(wish.payer.agent_id, wish.payer.purpose)


def _reserve_one(
    wish: CallRequest, rates: Rates | None, now: BudgetBalances
) -> Reservation | errors.OverBudget:
    """Reserve in every budget that applies, or in none; `now` follows what is reserved."""
    held = Reservation(wish.payer, wish.model, wish.bound, rates, str(uuid_utils.uuid7()))
    bound = Amount(held.max_cost, wish.bound.total)
    mine = {key: one for key, one in now.items() if one.scope in _scopes(wish)}
    for one in mine.values():
        reason = one.refusal_reason(bound)
        if reason is not None:
            left = (one.window_ends_at - datetime.now(UTC)).total_seconds()
            return errors.OverBudget(reason, max(left, 1))
    now |= {key: one.with_added(ZERO_AMOUNT, bound) for key, one in mine.items()}
    return held


def _row(settings: Settings, one: Reservation) -> dict[str, object]:
    payer = one.payer
    return {
        "tenant": payer.tenant,
        "id": one.charge_id,
        "agent_id": payer.agent_id,
        "user_id": payer.user_id,
        "purpose": payer.purpose,
        "model": one.model,
        **columns_of(one.bound),
        "cost_usd": one.max_cost,
        "state": ChargeState.RESERVED,
        "reserved_until": func.now() + timedelta(seconds=settings.job_lease),
    }


async def _tell_refusals(resources: Resources, refused: Sequence[CallRequest]) -> None:
    """Count refusals apart from the reservation, which has left nothing behind."""
    by = Counter(wish.payer.purpose for wish in refused)
    if by:
        await fleet_counters.increment_detached(resources.postgres, {"budget_refusals": by})


async def settle(
    resources: Resources, tenant: str, told: Sequence[tuple[Reservation, Usage | None]]
) -> list[Decimal | None]:
    """Book what calls really used (None: nobody said, so their bound); return what each cost."""
    used = {one.charge_id: usage for one, usage in told}
    rates = {one.charge_id: one.rates for one, _ in told}
    async with resources.postgres.for_tenant(tenant) as connection:
        await queries.lock_ledger(connection, tenant)
        endings = [
            _ending(charge, used[charge.id], rates[charge.id])
            for charge in await queries.lock(connection, tenant, used)
            if charge.state is not ChargeState.SETTLED
        ]
        await _end(connection, resources.settings, tenant, endings)
    await _tell(resources, endings)
    costs = {ending.before.id: ending.cost for ending in endings}
    return [costs.get(one.charge_id) for one, _ in told]


@dataclass(frozen=True, slots=True)
class _Ending:
    before: Charge
    state: ChargeState
    used: Usage
    cost: Decimal | None

    def movement(self) -> BudgetChange:
        """What budgets see: the reservation goes, the actual comes; a lost one is corrected."""
        held, actual = amount_of(self.before), Amount(self.cost, self.used.total)
        if self.before.state is ChargeState.RESERVED:
            return change_for_charge(self.before, actual, subtract(ZERO_AMOUNT, held))
        return change_for_charge(self.before, subtract(actual, held), ZERO_AMOUNT)


def _ending(before: Charge, used: Usage | None, rates: Rates | None) -> _Ending:
    if used is None:
        return _Ending(before, ChargeState.ESTIMATED, before.usage, before.cost_usd)
    return _Ending(before, ChargeState.SETTLED, used, prices.cost_of(rates, used))


async def _end(
    connection: AsyncConnection, settings: Settings, tenant: str, endings: Sequence[_Ending]
) -> None:
    for ending in endings:
        await queries.settle(connection, ending.before, ending.state, ending.used, ending.cost)
    await budget_updates.apply_changes(
        connection, settings, tenant, [ending.movement() for ending in endings]
    )


async def release(resources: Resources, tenant: str, held: Sequence[Reservation]) -> None:
    """Take reservations back: nothing was asked, or what was asked was refused."""
    ids = [one.charge_id for one in held]
    async with resources.postgres.for_tenant(tenant) as connection:
        await queries.lock_ledger(connection, tenant)
        charges = [c for c in await queries.lock(connection, tenant, ids) if c.state is ChargeState.RESERVED]
        for charge in charges:
            await queries.remove(connection, charge)
        gone = [
            change_for_charge(charge, ZERO_AMOUNT, subtract(ZERO_AMOUNT, amount_of(charge)))
            for charge in charges
        ]
        await budget_updates.apply_changes(connection, resources.settings, tenant, gone)


async def settle_expired(resources: Resources, tenant: str) -> int:
    """Settle at their bound the reservations whose worker never came back; return how many."""
    async with resources.postgres.for_tenant(tenant) as connection:
        await queries.lock_ledger(connection, tenant)
        charges = await queries.lock_expired_reservations(connection, tenant, _OVERDUE)
        endings = [_ending(charge, None, None) for charge in charges]
        await _end(connection, resources.settings, tenant, endings)
    await _tell(resources, endings)
    return len(endings)


async def _tell(resources: Resources, endings: Sequence[_Ending]) -> None:
    """Count what Loci itself spent, for `/metrics`: of all tenants together, by purpose and model."""
    costs: dict[str, float] = {}
    tokens: Counter[str] = Counter()
    for one in (one for one in endings if one.before.state is ChargeState.RESERVED):
        name = f"{one.before.purpose}:{one.before.model}"
        costs[name] = costs.get(name, 0) + float(one.cost or 0)
        tokens[f"input:{name}"] += one.used.input
        tokens[f"output:{name}"] += one.used.output
        tokens[f"cached:{name}"] += one.used.cached
    if costs:
        await fleet_counters.increment_detached(
            resources.postgres, {"spend_cost_usd": costs, "spend_tokens": tokens}
        )
