"""Keep observations of a session: durable, found by keyword at once, by vector later."""

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
    """Attach a checked observation to a session and return it as JSON."""
    async with (
        resources.postgres.for_tenant(caller.tenant) as connection,
        idempotent(connection, caller.tenant, key) as request,
    ):
        if request.stored is not None:
            return dict(request.stored)
        idle = resources.settings.window_ttl
        session = await get_session(connection, caller, session_id, idle, lock=True)
        observed = await queries.insert_rows(connection, session, draft)
        await session_queries.renew_expiry(connection, session)
        versions = {observed.id: index_document.VERSION}
        claims = await index_jobs.enqueue_index_jobs(
            connection, caller.tenant, RecordKind.OBSERVATION, versions, delay=WRITE_THROUGH_SECONDS
        )
        answer = observed.model_dump(mode="json")
        await request.store(answer, record_ids=[session_id], user_id=session.user_id)
    await resources.index_writer.write_through([index_document.document(observed)], claims)
    return answer
