"""Reserve the upper bound of a model call before it, and settle the actual cost after it.

    reserve ──▶ the call ──▶ settled     the provider reported the usage
                   ├───────▶ estimated   the reply was lost or had no usage: the upper bound counts
                   ├───────▶ (removed)   the call was refused or never made: nothing was used
                   └───────▶ estimated   the worker died: the sweep settles it after `reserved_until`

Settling is a transaction of its own, right after the reply. The money is spent even if the reply is
discarded later because the lease of the job was lost, and a crash between the two must not lose the
charge. A reply that comes after the sweep has settled the reservation still corrects the charge.
Several reservations of one tenant share a transaction, because an embedding call serves many records.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

import uuid_utils

from shared.foundation import errors
from shared.foundation.config import Settings
from shared.infra.transaction import Transaction
from shared.jobs import counters as fleet_counters
from shared.platform.resources import Resources
from shared.platform.spend import budget_queries, budget_updates, price_lists, prices, queries
from shared.platform.spend.budget import ZERO_AMOUNT, Amount, Budget, Period
from shared.platform.spend.budget_queries import amount_of
from shared.platform.spend.budget_updates import BudgetChange, change_for_charge, subtract
from shared.platform.spend.charge import Charge, ChargeState, Payer, budget_scopes, columns_of
from shared.platform.spend.price_lists import Rates
from shared.platform.spend.usage import Usage

_MAX_EXPIRED = 500
BudgetBalances = dict[tuple[str, Period], Budget]


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A call to be made: who pays for it, and the most tokens that it can use."""

    payer: Payer
    model: str
    bound: Usage


@dataclass(frozen=True, slots=True)
class Reservation:
    """The permission to make a call, whose upper bound is booked as a charge."""

    payer: Payer
    model: str
    bound: Usage
    rates: Rates | None
    charge_id: str

    @property
    def max_cost(self) -> Decimal | None:
        """The highest cost of the call in USD; None where the model has no price."""
        return None if self.rates is None else self.rates.max_cost(self.bound)


async def reserve(
    resources: Resources, tenant: str, requests: Sequence[CallRequest]
) -> list[Reservation | errors.OverBudget]:
    """Reserve the upper bound of each of a tenant's calls.

    Return a reservation for each call, or the OverBudget that names the budget that refused it.
    """
    async with resources.postgres.for_tenant(tenant) as tx:
        await queries.lock_ledger(tx)
        models = {request.model for request in requests}
        rates = await prices.effective_prices(tx, resources.settings, models)
        outcomes = await _reserve_all(tx, resources.settings, requests, rates)
        reservations = [outcome for outcome in outcomes if isinstance(outcome, Reservation)]
        rows = [_charge_row(reservation) for reservation in reservations]
        await queries.reserve(tx, rows, resources.settings.job_lease)
    pairs = zip(requests, outcomes, strict=True)
    await _count_refusals(
        resources, [request for request, outcome in pairs if isinstance(outcome, errors.OverBudget)]
    )
    return outcomes


async def _reserve_all(
    tx: Transaction, settings: Settings, requests: Sequence[CallRequest], rates: Mapping[str, Rates]
) -> list[Reservation | errors.OverBudget]:
    scopes = {scope for request in requests for scope in _scopes(request)}
    before = await budget_queries.lock_budgets(tx, scopes)
    balances: BudgetBalances = {(budget.scope, budget.period): budget for budget in before}
    outcomes = [_reserve_one(request, rates.get(request.model), balances) for request in requests]
    await budget_updates.save_budgets(tx, settings, before, list(balances.values()))
    return outcomes


def _scopes(request: CallRequest) -> tuple[str, ...]:
    return budget_scopes(request.payer.agent_id, request.payer.purpose)


def _reserve_one(
    request: CallRequest, rates: Rates | None, balances: BudgetBalances
) -> Reservation | errors.OverBudget:
    """Reserve the call's upper bound in every budget that applies, or in none.

    Return the reservation, or OverBudget with the seconds until the window ends. Update `balances` so
    that the next request of the batch sees this reservation.
    """
    reservation = Reservation(request.payer, request.model, request.bound, rates, str(uuid_utils.uuid7()))
    bound = Amount(reservation.max_cost, request.bound.total)
    budgets = {key: budget for key, budget in balances.items() if budget.scope in _scopes(request)}
    for budget in budgets.values():
        reason = budget.refusal_reason(bound)
        if reason is not None:
            seconds_left = (budget.window_ends_at - datetime.now(UTC)).total_seconds()
            return errors.OverBudget(reason, max(seconds_left, 1))
    balances |= {key: budget.with_added(ZERO_AMOUNT, bound) for key, budget in budgets.items()}
    return reservation


def _charge_row(reservation: Reservation) -> dict[str, object]:
    payer = reservation.payer
    return {
        "id": reservation.charge_id,
        "agent_id": payer.agent_id,
        "user_id": payer.user_id,
        "purpose": payer.purpose,
        "model": reservation.model,
        **columns_of(reservation.bound),
        "cost_usd": reservation.max_cost,
    }


async def _count_refusals(resources: Resources, requests: Sequence[CallRequest]) -> None:
    """Count refused calls by purpose, for `/metrics`.

    This is not part of the transaction of the reservation, in which a refused call leaves no trace.
    """
    counts = Counter(request.payer.purpose for request in requests)
    if counts:
        await fleet_counters.increment_detached(resources.postgres, {"budget_refusals": counts})


async def settle(
    resources: Resources, tenant: str, usages: Sequence[tuple[Reservation, Usage | None]]
) -> list[Decimal | None]:
    """Book the actual usage of calls, and return the cost of each in USD.

    A usage of None means that nobody reported it; the upper bound then counts.
    """
    usage_by_id = {reservation.charge_id: usage for reservation, usage in usages}
    rates = {reservation.charge_id: reservation.rates for reservation, _ in usages}
    async with resources.postgres.for_tenant(tenant) as tx:
        await queries.lock_ledger(tx)
        settlements = [
            _settlement_of(charge, usage_by_id[charge.id], rates[charge.id])
            for charge in await queries.lock(tx, usage_by_id)
            if charge.state is not ChargeState.SETTLED
        ]
        await _save_settlements(tx, resources.settings, settlements)
    await _count_spend(resources, settlements)
    costs = {settlement.charge.id: settlement.cost for settlement in settlements}
    return [costs.get(reservation.charge_id) for reservation, _ in usages]


@dataclass(frozen=True, slots=True)
class _Settlement:
    """A charge as it was before, with its new state and its actual numbers."""

    charge: Charge
    state: ChargeState
    usage: Usage
    cost: Decimal | None

    def budget_change(self) -> BudgetChange:
        """Return what changes in budgets.

        The actual amount replaces a reservation. An estimated charge is corrected by the difference.
        """
        booked, actual = amount_of(self.charge), Amount(self.cost, self.usage.total)
        if self.charge.state is ChargeState.RESERVED:
            return change_for_charge(self.charge, actual, subtract(ZERO_AMOUNT, booked))
        return change_for_charge(self.charge, subtract(actual, booked), ZERO_AMOUNT)


def _settlement_of(charge: Charge, usage: Usage | None, rates: Rates | None) -> _Settlement:
    if usage is None:
        return _Settlement(charge, ChargeState.ESTIMATED, charge.usage, charge.cost_usd)
    return _Settlement(charge, ChargeState.SETTLED, usage, price_lists.cost_of(rates, usage))


async def _save_settlements(tx: Transaction, settings: Settings, settlements: Sequence[_Settlement]) -> None:
    for settlement in settlements:
        await queries.settle(tx, settlement.charge, settlement.state, settlement.usage, settlement.cost)
    changes = [settlement.budget_change() for settlement in settlements]
    await budget_updates.apply_changes(tx, settings, changes)


async def release(resources: Resources, tenant: str, reservations: Sequence[Reservation]) -> None:
    """Delete reservations of calls that were not made or that the endpoint refused."""
    ids = [reservation.charge_id for reservation in reservations]
    async with resources.postgres.for_tenant(tenant) as tx:
        await queries.lock_ledger(tx)
        locked_charges = await queries.lock(tx, ids)
        charges = [charge for charge in locked_charges if charge.state is ChargeState.RESERVED]
        for charge in charges:
            await queries.remove(tx, charge)
        changes = [
            change_for_charge(charge, ZERO_AMOUNT, subtract(ZERO_AMOUNT, amount_of(charge)))
            for charge in charges
        ]
        await budget_updates.apply_changes(tx, resources.settings, changes)


async def settle_expired(resources: Resources, tenant: str) -> int:
    """Settle expired reservations at their upper bound, and return how many. Their workers are dead."""
    async with resources.postgres.for_tenant(tenant) as tx:
        await queries.lock_ledger(tx)
        charges = await queries.lock_expired_reservations(tx, _MAX_EXPIRED)
        settlements = [_settlement_of(charge, None, None) for charge in charges]
        await _save_settlements(tx, resources.settings, settlements)
    await _count_spend(resources, settlements)
    return len(settlements)


async def _count_spend(resources: Resources, settlements: Sequence[_Settlement]) -> None:
    """Count the spend of Loci's own calls for `/metrics`: of all tenants together, by purpose and model."""
    costs: dict[str, float] = {}
    tokens: Counter[str] = Counter()
    for settlement in settlements:
        if settlement.charge.state is not ChargeState.RESERVED:  # an estimate was counted before
            continue
        name = f"{settlement.charge.purpose}:{settlement.charge.model}"
        costs[name] = costs.get(name, 0) + float(settlement.cost or 0)
        tokens[f"input:{name}"] += settlement.usage.input
        tokens[f"output:{name}"] += settlement.usage.output
        tokens[f"cached:{name}"] += settlement.usage.cached
    if costs:
        await fleet_counters.increment_detached(
            resources.postgres, {"spend_cost_usd": costs, "spend_tokens": tokens}
        )
