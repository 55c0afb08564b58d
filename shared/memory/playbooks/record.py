"""Record playbooks. One is promoted if its flow was completed and the user was satisfied with it.

A promoted playbook is durable and found by its flow and its words at once; its embedding follows later.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session
from shared.foundation import errors
from shared.foundation.origin import Origin
from shared.foundation.scope import Caller, Scope
from shared.foundation.stages import RecordKind
from shared.infra.transaction import Transaction
from shared.memory.longterm import tombstones
from shared.memory.playbooks import index_document, queries, satisfaction
from shared.memory.playbooks.playbook import Playbook, PlaybookDraft, Reason, query_tombstone
from shared.memory.playbooks.record_type import PLAYBOOK
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area
from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent
from shared.platform.resources import Resources
from shared.records.transaction import RecordTransaction


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request stands: in a session, whose scope it has, or in the scope that it names."""

    agent_id: str | None = None
    user_id: str | None = None
    session_id: str | None = None


async def record(
    resources: Resources,
    caller: Caller,
    place: Place,
    draft: PlaybookDraft,
    key: IdempotencyKey | None = None,
) -> dict[str, Any]:
    """Record a validated playbook and return it as JSON, with `promoted` and the reason.

    Raises errors.NotFound for a session that the caller may not see, errors.Forbidden for a scope that it may
    not write, and errors.Invalid for a session of another scope than the one that is named, or for more trust
    than the caller has.
    """
    origin = caller.origin.lowered(draft.trust)
    async with resources.transaction(caller.tenant) as tx, idempotent(tx, key) as request:
        if request.stored is not None:
            tx.index_repeated(RecordKind.PLAYBOOK, [request.stored["id"]], PLAYBOOK.read_documents)
            return dict(request.stored)
        scope, session = await resolve(tx, resources, caller, place, Action.WRITE)
        playbook = await _insert(tx, scope, session, draft, origin)
        # Playbooks with this query may have been deleted before: a caller wants one again.
        await tombstones.remove(tx, scope, [query_tombstone(draft.user_query)])
        await index(tx, [playbook])
        response = playbook.model_dump(mode="json")
        record_ids = [playbook.id] if session is None else [playbook.id, session.id]
        await request.store(response, record_ids=record_ids, user_id=scope.user_id)
        return response


async def resolve(
    tx: Transaction, resources: Resources, caller: Caller, place: Place, action: Action
) -> tuple[Scope, Session | None]:
    """Return the scope of a request and its session, which is locked for a write. Raises as `record` does."""
    if place.session_id is None:
        return rights.scope(caller, Area.MEMORIES, action, place.agent_id, place.user_id), None
    session = await get_session(tx, resources.settings, caller, place.session_id, lock=action is Action.WRITE)
    named = (place.agent_id or session.agent_id, place.user_id or session.user_id)
    if named != (session.agent_id, session.user_id):
        raise errors.Invalid("session_id", "must be a session of this agent and user, if they are named")
    return rights.scope(caller, Area.MEMORIES, action, session.agent_id, session.user_id), session


async def _insert(
    tx: Transaction, scope: Scope, session: Session | None, draft: PlaybookDraft, origin: Origin
) -> Playbook:
    if session is None:
        reason = _reported(draft) or Reason.REPORTED
        return await queries.insert_playbook(tx, scope, draft, reason, origin)
    turns = await satisfaction.turns_of_flow(tx, session, draft.user_query)
    reason = _reported(draft) or await satisfaction.judge(tx, session.id, turns)
    return await queries.insert_playbook(tx, scope, draft, reason, origin, session_id=session.id, turns=turns)


def _reported(draft: PlaybookDraft) -> Reason | None:
    """Return the reason that the report itself gives, if it gives one."""
    if not draft.is_complete:
        return Reason.NOT_COMPLETED
    if draft.satisfied is None:
        return None
    return Reason.SATISFIED if draft.satisfied else Reason.DISSATISFIED


async def index(tx: RecordTransaction, playbooks: Sequence[Playbook]) -> None:
    """Let those of the playbooks that are promoted be found after the commit."""
    await tx.index([index_document.document(playbook) for playbook in playbooks if playbook.promoted])
