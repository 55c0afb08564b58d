"""Promote the playbooks whose users went on in the meantime, or note why they are not promoted.

Nothing watches the turns: it is decided when playbooks are read, and before a session expires. Until then it
makes no difference.
"""

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation.scope import Scope
from shared.memory.playbooks import queries, record, satisfaction
from shared.memory.playbooks.playbook import Playbook, Reason
from shared.platform.resources import Resources

_BATCH = 100


async def settle_visible(resources: Resources, scope: Scope) -> None:
    """Settle the playbooks that a scope sees; those that are promoted are found when this returns."""
    is_more = True
    while is_more:
        async with resources.postgres.for_tenant(scope.tenant) as connection:
            decidable = await queries.list_decidable(connection, scope, _BATCH)
        settled = await _settle_now(resources, scope.tenant, decidable)
        is_more = len(decidable) == _BATCH and bool(settled)


async def settle_one(resources: Resources, playbook: Playbook) -> Playbook:
    """Settle a playbook that may be waiting for its user, and return it as it is now."""
    if playbook.reason is not Reason.WAITING:
        return playbook
    settled = await _settle_now(resources, playbook.tenant, [playbook])
    return settled[0] if settled else playbook


async def _settle_now(resources: Resources, tenant: str, waiting: Sequence[Playbook]) -> list[Playbook]:
    async with resources.postgres.for_tenant(tenant) as connection:
        settled = await _settle(connection, waiting)
        jobs = await record.enqueue(connection, settled)
    if jobs:
        await record.write_through(resources, settled, jobs)
    return settled


async def settle_expired(connection: AsyncConnection, tenant: str, session_ids: Sequence[str]) -> None:
    """Settle the playbooks of sessions that are about to be deleted because they expired; all of them stay.

    Workers index what is promoted.
    """
    settled = await _settle(connection, await queries.list_waiting_in(connection, tenant, session_ids))
    await record.enqueue(connection, settled)
    await queries.keep_without_sessions(connection, tenant, session_ids)


async def _settle(connection: AsyncConnection, waiting: Sequence[Playbook]) -> list[Playbook]:
    """Decide about playbooks, and return those about which nobody else has decided meanwhile."""
    settled: list[Playbook] = []
    for playbook in waiting:
        if playbook.session_id is None or playbook.last_seq is None:
            continue  # a constraint of the table rules that out
        reason = await satisfaction.judge(connection, playbook.tenant, playbook.session_id, playbook.last_seq)
        if reason is not Reason.WAITING:
            decided = await queries.decide(connection, playbook.tenant, playbook.id, reason)
            settled += [decided] if decided is not None else []
    return settled
