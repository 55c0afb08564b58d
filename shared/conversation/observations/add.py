"""Add observations to a session. They are durable and found by keyword at once; embeddings follow later."""

from typing import Any

from shared.conversation.observations import index_document, queries
from shared.conversation.observations.observation import Observation, ObservationDraft
from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session
from shared.foundation.scope import Caller
from shared.foundation.stages import RecordKind
from shared.infra.transaction import Transaction
from shared.jobs import index_jobs
from shared.jobs.job import Job
from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent
from shared.platform.resources import Resources
from shared.search.index.writer import WRITE_THROUGH_SECONDS


async def add_observation(
    resources: Resources,
    caller: Caller,
    session_id: str,
    draft: ObservationDraft,
    key: IdempotencyKey | None = None,
) -> dict[str, Any]:
    """Add a validated observation to a session and return it as JSON.

    Raises errors.NotFound if there is no such session that the caller may see.
    """
    async with (
        resources.postgres.for_tenant(caller.tenant) as tx,
        idempotent(tx, key) as request,
    ):
        if request.stored is None:
            session = await get_session(tx, resources.settings, caller, session_id, lock=True)
            observation, jobs = await insert(tx, session, draft)
            response = observation.model_dump(mode="json")
            await request.store(response, record_ids=[session_id], user_id=session.user_id)
    if request.stored is not None:
        await resources.index_writer.write_through_unindexed(
            caller.tenant, RecordKind.OBSERVATION, [request.stored["id"]], queries.load_documents
        )
        return dict(request.stored)
    await resources.index_writer.write_through([index_document.document(observation)], jobs)
    return response


async def insert(tx: Transaction, session: Session, draft: ObservationDraft) -> tuple[Observation, list[Job]]:
    """Insert an observation of a locked session, and return it with its index jobs."""
    observation = await queries.insert_observation(tx, session, draft)
    await session_queries.renew_expiry(tx, session)
    versions = {observation.id: index_document.VERSION}
    jobs = await index_jobs.enqueue_index_jobs(
        tx, session.tenant, RecordKind.OBSERVATION, versions, delay=WRITE_THROUGH_SECONDS
    )
    return observation, jobs
