"""Keep observations of a session: durable, found by keyword at once, by vector later."""

from typing import Any

from shared.conversation.observations import index_document, queries
from shared.conversation.observations.observation import ObservationDraft
from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.open import find
from shared.foundation.scope import Caller
from shared.foundation.stages import Kind
from shared.jobs import index_jobs
from shared.platform.idempotency.queries import RequestKey, idempotent
from shared.platform.resources import Resources
from shared.search.index.writer import HEAD_START


async def observe(
    resources: Resources,
    caller: Caller,
    session_id: str,
    draft: ObservationDraft,
    key: RequestKey | None = None,
) -> dict[str, Any]:
    """Attach a checked observation to a session and return it as JSON."""
    async with (
        resources.postgres.tenant(caller.tenant) as connection,
        idempotent(connection, caller.tenant, key) as request,
    ):
        if request.stored is not None:
            return dict(request.stored)
        idle = resources.settings.window_idle
        session = await find(connection, caller, session_id, idle, lock=True)
        observed = await queries.add(connection, session, draft)
        await session_queries.prolong(connection, session)
        versions = {observed.id: index_document.VERSION}
        claims = await index_jobs.enqueue_index(
            connection, caller.tenant, Kind.OBSERVATION, versions, delay=HEAD_START
        )
        answer = observed.model_dump(mode="json")
        await request.store(answer, record_ids=[session_id], user_id=session.user_id)
    await resources.writer.write_through([index_document.document(observed)], claims)
    return answer
