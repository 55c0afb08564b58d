"""List proposals of memories, and decide about one for a caller.

A key with a binding sees no proposal that rests on the turns of another user: it repeats what they said. It
decides only about what rests on sessions that it may read.
"""

from datetime import datetime
from typing import Any

from shared.conversation.sessions import readable_queries
from shared.conversation.turns.turn import record_id_of
from shared.foundation import errors
from shared.foundation.scope import Caller, Scope
from shared.infra.postgres_failures import repeated_after_deadlock
from shared.infra.transaction import Transaction
from shared.jobs import removals
from shared.lifecycle import settle_proposal
from shared.lifecycle.settle_proposal import Decision
from shared.memory.longterm import save
from shared.memory.proposals import queries
from shared.memory.proposals.proposal import Proposal, ProposalState, TurnEvidence
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area, Owner
from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent
from shared.platform.resources import Resources


async def list_proposals(
    resources: Resources,
    caller: Caller,
    scope: Scope,
    kind: str | None,
    state: ProposalState | None,
    limit: int,
    after: tuple[datetime, str] | None,
) -> list[Proposal]:
    """Return the proposals that a scope sees, newest first, from the position (created_at, id) `after` on."""
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        return await queries.list_page(tx, scope, kind, state, limit, after, only_of=caller.user_id)


async def find(resources: Resources, caller: Caller, proposal_id: str) -> Proposal | None:
    """Return a proposal, or None if the caller sees no such one."""
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        found = await queries.find(tx, proposal_id)
    return found if found is not None and _is_visible(caller, found) else None


def _is_visible(caller: Caller, proposal: Proposal) -> bool:
    rests_on_own = caller.user_id is None or set(proposal.evidence_user_ids) <= {caller.user_id}
    owner = Owner(proposal.agent_id, proposal.user_id)
    return rests_on_own and rights.allows(caller, Area.MEMORIES, Action.READ, owner)


@repeated_after_deadlock
async def decide(
    resources: Resources,
    caller: Caller,
    proposal_id: str,
    decision: Decision,
    key: IdempotencyKey | None = None,
) -> dict[str, Any]:
    """Approve or refuse a proposal, and return it as JSON.

    Raises errors.NotFound if the caller sees no such proposal, errors.Forbidden if it may not write the
    memory or not read what it rests on, and errors.Conflict as `settle_proposal.settle` does.
    """
    async with resources.transaction(caller.tenant) as tx, idempotent(tx, key) as request:
        if request.stored is not None:
            save.index_repeated(tx, [id_ for id_ in [request.stored["memory_id"]] if id_])
            return dict(request.stored)
        proposal = await _lock(tx, caller, proposal_id)
        settled = await settle_proposal.settle(tx, proposal, decision)
        response = settled.to_json()
        await request.store(response, record_ids=_record_ids(settled), user_id=settled.user_id)
        return response


def _record_ids(proposal: Proposal) -> list[str]:
    """Return the records whose text a proposal repeats, and itself."""
    turns = [item for item in proposal.evidence if isinstance(item, TurnEvidence)]
    turn_ids = [record_id_of(turn.session_id, turn.seq) for turn in turns]
    stored = [proposal.memory_id] if proposal.memory_id else []
    return [proposal.id, *proposal.edited_at, *stored, *sorted(proposal.session_ids), *turn_ids]


async def _lock(tx: Transaction, caller: Caller, proposal_id: str) -> Proposal:
    missing = f"no proposal '{proposal_id}'"
    found = await queries.find(tx, proposal_id)
    if found is None or not _is_visible(caller, found):
        raise errors.NotFound(missing)
    await removals.delay_erasures(tx, found.scope)
    proposal = await settle_proposal.lock(tx, proposal_id)
    if proposal is None or not _is_visible(caller, proposal):
        raise errors.NotFound(missing)
    owner = Owner(proposal.agent_id, proposal.user_id)
    rights.require(caller, Area.MEMORIES, Action.WRITE, owner, missing)
    readable = await readable_queries.list_readable(tx, caller, proposal.session_ids)
    if not rights.is_unbound(caller) and not proposal.session_ids <= readable:
        raise errors.Forbidden("the proposal rests on a session that this key may not read")
    return proposal
