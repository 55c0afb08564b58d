"""Add observations to a session. They are durable and found by keyword at once; embeddings follow later."""

from typing import Any

from shared.conversation.observations import index_document, queries
from shared.conversation.observations.observation import ObservationDraft
from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.open import get_session
from shared.foundation.scope import Caller
from shared.foundation.stages import RecordKind
from shared.jobs import index_jobs
from shared.platform.idempotency.queries import IdempotencyKey, idempotent
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
        resources.postgres.for_tenant(caller.tenant) as connection,
        idempotent(connection, caller.tenant, key) as request,
    ):
        if request.stored is not None:
            return dict(request.stored)
        idle_after = resources.settings.window_ttl
        session = await get_session(connection, caller, session_id, idle_after, lock=True)
        observation = await queries.insert_rows(connection, session, draft)
        await session_queries.renew_expiry(connection, session)
        versions = {observation.id: index_document.VERSION}
        jobs = await index_jobs.enqueue_index_jobs(
            connection, caller.tenant, RecordKind.OBSERVATION, versions, delay=WRITE_THROUGH_SECONDS
        )
        response = observation.model_dump(mode="json")
        await request.store(response, record_ids=[session_id], user_id=session.user_id)
    await resources.index_writer.write_through([index_document.document(observation)], jobs)
    return response
