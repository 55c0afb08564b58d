"""Promote the playbooks whose users went on in the meantime, or note why they are not promoted.

Nothing watches the turns: it is decided when playbooks are read, by each sweep, and before a session expires.
"""

from collections.abc import Sequence

from sqlalchemy import ColumnElement

from shared.conversation.sessions import queries as session_queries
from shared.foundation.scope import Scope
from shared.infra.postgres import visible_scope
from shared.infra.transaction import Transaction
from shared.memory.playbooks import queries, record, satisfaction
from shared.memory.playbooks.playbook import Playbook, Reason
from shared.memory.playbooks.table import playbook as playbook_table
from shared.platform.resources import Resources
from shared.records.transaction import RecordTransaction

_BATCH = 100


async def settle_visible(resources: Resources, scope: Scope) -> None:
    """Settle the playbooks that a scope sees; those that are promoted are found when this returns."""
    await _settle_decidable(resources, scope.tenant, visible_scope(playbook_table, scope))


async def settle_tenant(resources: Resources, tenant: str) -> int:
    """Settle all playbooks of a tenant, whoever sees them, and return how many were decided about.

    Patterns count them, and nobody may ever read them.
    """
    return await _settle_decidable(resources, tenant)


async def _settle_decidable(resources: Resources, tenant: str, *conditions: ColumnElement[bool]) -> int:
    count, is_more = 0, True
    while is_more:
        async with resources.postgres.for_tenant(tenant) as tx:
            decidable = await queries.list_decidable(tx, _BATCH, *conditions)
        settled = await _settle_now(resources, tenant, decidable) if decidable else []
        count += len(settled)
        is_more = len(decidable) == _BATCH and bool(settled)
    return count


async def settle_one(resources: Resources, playbook: Playbook) -> Playbook:
    """Settle a playbook that may be waiting for its user, and return it as it is now."""
    if playbook.reason is not Reason.WAITING:
        return playbook
    settled = await _settle_now(resources, playbook.tenant, [playbook])
    return settled[0] if settled else playbook


async def _settle_now(resources: Resources, tenant: str, waiting: Sequence[Playbook]) -> list[Playbook]:
    async with resources.transaction(tenant) as tx:
        settled = await _settle(tx, waiting)
        await record.index(tx, settled)
    return settled


async def settle_expired(tx: RecordTransaction, session_ids: Sequence[str]) -> None:
    """Settle the playbooks of sessions that are about to be deleted, because they expired; all stay."""
    waiting = await queries.list_waiting_in(tx, session_ids)
    settled = await _settle(tx, waiting)
    await record.index(tx, settled)
    await queries.keep_without_sessions(tx, session_ids)


async def _settle(tx: Transaction, waiting: Sequence[Playbook]) -> list[Playbook]:
    """Decide about playbooks of a tenant, and return those about which nobody else has decided meanwhile.

    Their sessions are locked, so that no turn that decides is withdrawn meanwhile.
    """
    session_ids = sorted({playbook.session_id for playbook in waiting if playbook.session_id is not None})
    await session_queries.lock_existing(tx, session_ids)
    settled: list[Playbook] = []
    for playbook in waiting:
        if playbook.session_id is None or playbook.turns is None:
            continue  # a constraint of the table rules that out
        turns = await satisfaction.with_repeated_query(
            tx, playbook.session_id, playbook.turns, playbook.user_query
        )
        if turns != playbook.turns:
            await queries.move_turns(tx, playbook, turns)
        reason = await satisfaction.judge(tx, playbook.session_id, turns)
        if reason is not Reason.WAITING:
            decided = await queries.decide(tx, playbook.id, reason)
            settled += [decided] if decided is not None else []
    return settled
