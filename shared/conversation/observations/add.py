"""Add observations to a session. They are durable and found by keyword at once; embeddings follow later."""

from typing import Any

from shared.conversation.observations import index_document, queries
from shared.conversation.observations.observation import Observation, ObservationDraft
from shared.conversation.observations.record_type import OBSERVATION
from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session
from shared.foundation.origin import Origin
from shared.foundation.scope import Caller
from shared.foundation.stages import RecordKind
from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent
from shared.platform.resources import Resources
from shared.records.transaction import RecordTransaction


async def add_observation(
    resources: Resources,
    caller: Caller,
    session_id: str,
    draft: ObservationDraft,
    key: IdempotencyKey | None = None,
) -> dict[str, Any]:
    """Add a validated observation to a session and return it as JSON.

    Raises errors.NotFound if there is no such session that the caller may see, and errors.Invalid for more
    trust than the caller has.
    """
    origin = caller.origin.lowered(draft.trust)
    async with resources.transaction(caller.tenant) as tx, idempotent(tx, key) as request:
        if request.stored is not None:
            tx.index_repeated(RecordKind.OBSERVATION, [request.stored["id"]], OBSERVATION.read_documents)
            return dict(request.stored)
        session = await get_session(tx, resources.settings, caller, session_id, lock=True)
        response = (await insert(tx, session, draft, origin)).model_dump(mode="json")
        await request.store(response, record_ids=[session_id], user_id=session.user_id)
        return response


async def insert(
    tx: RecordTransaction, session: Session, draft: ObservationDraft, origin: Origin
) -> Observation:
    """Insert an observation of a locked session, and return it."""
    observation = await queries.insert(tx, session, draft, origin)
    await session_queries.renew_expiry(tx, session)
    await tx.index([index_document.document(observation)])
    return observation
