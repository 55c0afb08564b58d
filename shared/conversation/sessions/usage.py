"""Record the usage that agents report of their own model calls, and show the totals of a session.

A usage is recorded once per usage id. The session's row stays locked, so that concurrent reports
add up exactly. The totals, the charge and the budgets change in one transaction.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import orjson
import uuid_utils

from shared.conversation.sessions import usage_queries
from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session, totals_to_json
from shared.foundation import errors
from shared.foundation.config import Settings
from shared.foundation.scope import Caller
from shared.infra.transaction import Transaction
from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent
from shared.platform.resources import Resources
from shared.platform.spend import budget_updates, price_lists, prices
from shared.platform.spend import queries as charge_queries
from shared.platform.spend.charge import Charge, ChargeState, Purpose, ReportedUsage, columns_of
from shared.platform.spend.price_lists import Rates

EMPTY_TOTALS: dict[str, Any] = {
    "total_input_tokens": 0,
    "total_output_tokens": 0,
    "total_cached_tokens": 0,
    "total_cost_usd": Decimal(0),
    "last_updated": None,
    "unpriced": 0,
}


async def report_usage(
    resources: Resources,
    caller: Caller,
    session_id: str,
    usage: ReportedUsage,
    key: IdempotencyKey | None = None,
) -> dict[str, Any]:
    """Add one usage to a session; return the session's totals and the charge as JSON.

    A repeated usage id with the same numbers adds nothing. Raises errors.Conflict for a repeated
    usage id with other numbers, and errors.NotFound for an unknown session.
    """
    async with resources.postgres.for_tenant(caller.tenant) as tx, idempotent(tx, key) as request:
        # A repeated request is processed too: its usage id prevents a second charge, and the
        # response shows the current totals.
        session = await get_session(tx, resources.settings, caller, session_id, lock=True)
        [charge] = await record_usage(tx, resources.settings, session, [usage])
        if request.stored is None:
            await request.store(
                {"usage_id": charge.usage_id}, record_ids=[session.id], user_id=session.user_id
            )
        updated_session = await get_session(tx, resources.settings, caller, session_id)
    return {**(totals_to_json(updated_session.spend) or {}), "charge": charge.to_json()}


async def record_usage(
    tx: Transaction, settings: Settings, session: Session, usages: Sequence[ReportedUsage]
) -> list[Charge]:
    """Record usages of a locked session; return their charges, including those that existed before.

    Raises errors.Conflict where a usage id exists with other numbers.
    """
    if not usages:
        return []
    await charge_queries.lock_ledger(tx)
    usage_ids = [usage.usage_id or "" for usage in usages]
    existing_charges = await charge_queries.list_of_session(tx, session.id, usage_ids)
    new_usages = {usage.usage_id: usage for usage in usages if usage.usage_id not in existing_charges}
    models = {usage.model for usage in new_usages.values()}
    rates = await prices.effective_prices(tx, settings, models)
    rows = [_charge_row(session, usage, rates) for usage in new_usages.values()]
    new_charges = await charge_queries.add(tx, rows)
    charges = existing_charges | {charge.usage_id or "": charge for charge in new_charges}
    _check_same_numbers(usages, charges)
    if new_charges:
        await usage_queries.add_charges(tx, session.id, new_charges)
        changes = [budget_updates.change_for_new_charge(charge) for charge in new_charges]
        await budget_updates.apply_changes(tx, settings, changes)
    return [charges[usage_id] for usage_id in usage_ids]


def _charge_row(session: Session, usage: ReportedUsage, rates: Mapping[str, Rates]) -> dict[str, Any]:
    return {
        "tenant": session.tenant,
        "id": str(uuid_utils.uuid7()),
        "session_id": session.id,
        "usage_id": usage.usage_id,
        "agent_id": session.agent_id,
        "user_id": session.user_id,
        "purpose": Purpose.SESSION,
        "model": usage.model,
        **columns_of(usage.usage),
        "cost_usd": price_lists.cost_of(rates.get(usage.model), usage.usage),
        "state": ChargeState.SETTLED,
    }


def _check_same_numbers(usages: Sequence[ReportedUsage], charges: Mapping[str, Charge]) -> None:
    for usage in usages:
        charge = charges[usage.usage_id or ""]
        if (charge.model, charge.usage) != (usage.model, usage.usage):
            raise errors.Conflict(f"usage '{usage.usage_id}' was booked with other numbers")


async def session_totals(resources: Resources, caller: Caller, session_id: str) -> dict[str, Any]:
    """Return a session's totals as JSON; all are zero before the first charge."""
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        session = await get_session(tx, resources.settings, caller, session_id)
    return totals_to_json(session.spend or EMPTY_TOTALS) or {}


def totals_file(totals: Mapping[str, Any] | None) -> bytes:
    """Return totals as the content of a session's file `spend.json`.

    The file has no field `unpriced`, because its format is that of the source system.
    """
    fields = totals_to_json(totals or EMPTY_TOTALS) or {}
    fields.pop("unpriced", None)
    return orjson.dumps(fields, option=orjson.OPT_INDENT_2)
