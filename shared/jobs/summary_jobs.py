"""Make the summary of a session due. This module writes jobs and knows nothing else about summaries.

The session must be locked: a worker that finds nothing to do ends its job under the same lock.
"""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation.stages import EXPIRE_WINDOW, SUMMARIZE, Stage
from shared.infra import prepared
from shared.infra.telemetry import traces

# A job that exists is not reset: it may wait for a model that is away, and finds out by itself what is due.
_SCHEDULE = text(
    """
    INSERT INTO job (tenant, kind, record_id, pipeline, stage, version, run_at, traceparent)
    VALUES (:tenant, 'session', :session_id, :pipeline, :stage, 1, now() + make_interval(secs => :delay),
            :traceparent)
    ON CONFLICT (tenant, kind, record_id, pipeline, generation) DO NOTHING
    """
)


async def schedule_summary(connection: AsyncConnection, tenant: str, session_id: str) -> None:
    """Make a worker look what of a session is to be summarised, unless one is going to look already."""
    await _schedule(connection, tenant, session_id, SUMMARIZE, 0)


async def schedule_window_expiry(
    connection: AsyncConnection, tenant: str, session_id: str, delay: float
) -> None:
    """Make a worker look in `delay` seconds whether a session is idle, unless one is going to already."""
    await _schedule(connection, tenant, session_id, EXPIRE_WINDOW, delay)


async def _schedule(
    connection: AsyncConnection, tenant: str, session_id: str, stage: Stage, delay: float
) -> None:
    names = {"tenant": tenant, "session_id": session_id, "pipeline": stage.pipeline, "stage": stage.name}
    await prepared.fetch(connection, _SCHEDULE, names | {"delay": delay, "traceparent": traces.traceparent()})
