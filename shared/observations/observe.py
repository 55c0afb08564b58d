"""Keep observations of a session: durable, found by keyword at once, by vector later."""

from typing import Any

from shared.idempotency.store import RequestKey, idempotent
from shared.index.writer import HEAD_START
from shared.observations import document, store
from shared.observations.record import ObservationDraft
from shared.resources import Resources
from shared.scope import Caller
from shared.sessions import open as sessions
from shared.sessions import store as session_store
from shared.stages import Kind
from shared.work import store as work


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
        session = await sessions.find(connection, caller, session_id, idle, lock=True)
        observed = await store.add(connection, session, draft)
        await session_store.prolong(connection, session)
        versions = {observed.id: document.VERSION}
        claims = await work.enqueue_index(
            connection, caller.tenant, Kind.OBSERVATION, versions, delay=HEAD_START
        )
        answer = observed.model_dump(mode="json")
        await request.store(answer, record_ids=[session_id], user_id=session.user_id)
    await resources.writer.write_through([document.document(observed)], claims)
    return answer
