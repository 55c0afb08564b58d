"""Book what agents report of their own calls: with its session's totals, once for each usage id.

The session's row is locked, so that reports at once add up to the last digit, and its totals,
charge and budgets change in one transaction or not at all.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import uuid_utils
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.sessions import queries
from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session
from shared.conversation.sessions.totals import NONE_YET, shown
from shared.foundation import errors
from shared.foundation.config import Settings
from shared.foundation.scope import Caller
from shared.platform.idempotency.queries import IdempotencyKey, idempotent
from shared.platform.resources import Resources
from shared.platform.spend import budget_updates, prices
from shared.platform.spend import queries as charge_queries
from shared.platform.spend.charge import Charge, ChargeState, Purpose, ReportedUsage, columns_of
from shared.platform.spend.prices import Rates


async def report_usage(
    resources: Resources,
    caller: Caller,
    session_id: str,
    told: ReportedUsage,
    key: IdempotencyKey | None = None,
) -> dict[str, Any]:
    """Add one usage to a session; return its totals and the charge, as JSON.

    The same usage id with the same numbers adds nothing; with others it is errors.Conflict.
    """
    async with (
        resources.postgres.for_tenant(caller.tenant) as connection,
        idempotent(connection, caller.tenant, key) as request,
    ):
        # The answer is made anew: what is asked for is done once by its usage id.
        idle = resources.settings.window_ttl
        session = await get_session(connection, caller, session_id, idle, lock=True)
        [charge] = await record_usage(connection, resources.settings, session, [told])
        if request.stored is None:
            await request.store({"usage_id": charge.usage_id}, user_id=session.user_id)
        after = await get_session(connection, caller, session_id, idle)
    return {**(shown(after.spend) or {}), "charge": charge.to_json()}


async def record_usage(
    connection: AsyncConnection, settings: Settings, session: Session, told: Sequence[ReportedUsage]
) -> list[Charge]:
    """Book usages of a locked session; return their charges, those that were there before as well.

    Raises errors.Conflict where a usage id is known with other numbers.
    """
    if not told:
        return []
    await charge_queries.lock_ledger(connection, session.tenant)
    ids = [one.usage_id or "" for one in told]
    known = await charge_queries.of_session(connection, session.tenant, session.id, ids)
    fresh = {one.usage_id: one for one in told if one.usage_id not in known}
    rates = await prices.effective_prices(
        connection, settings, session.tenant, {one.model for one in fresh.values()}
    )
    added = await charge_queries.add(connection, [_row(session, one, rates) for one in fresh.values()])
    booked = known | {charge.usage_id or "": charge for charge in added}
    _check_same(told, booked)
    if added:
        await queries.add_to_session(connection, session.tenant, session.id, added)
        await budget_updates.apply_changes(
            connection, settings, session.tenant, [budget_updates.change_for_new_charge(one) for one in added]
        )
    return [booked[name] for name in ids]


def _row(session: Session, one: ReportedUsage, rates: Mapping[str, Rates]) -> dict[str, Any]:
    return {
        "tenant": session.tenant,
        "id": str(uuid_utils.uuid7()),
        "session_id": session.id,
        "usage_id": one.usage_id,
        "agent_id": session.agent_id,
        "user_id": session.user_id,
        "purpose": Purpose.SESSION,
        "model": one.model,
        **columns_of(one.usage),
        "cost_usd": prices.cost_of(rates.get(one.model), one.usage),
        "state": ChargeState.SETTLED,
    }


def _check_same(told: Sequence[ReportedUsage], booked: Mapping[str, Charge]) -> None:
    for one in told:
        charge = booked[one.usage_id or ""]
        if (charge.model, charge.usage) != (one.model, one.usage):
            raise errors.Conflict(f"usage '{one.usage_id}' was booked with other numbers")


async def session_totals(resources: Resources, caller: Caller, session_id: str) -> dict[str, Any]:
    """Return a session's totals as JSON: zeros before the first charge."""
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        session = await get_session(connection, caller, session_id, resources.settings.window_ttl)
    return shown(session.spend or NONE_YET) or {}
