"""Make the summary of a session due. This module writes jobs and knows nothing else about summaries.

The session must be locked: a worker that finds nothing to do ends its job under the same lock.
"""

from sqlalchemy import text

from shared.foundation.stages import EXPIRE_WINDOW, SUMMARIZE, Stage
from shared.infra.telemetry import traces
from shared.infra.transaction import Transaction

# A job that exists is not reset: it may wait for a model that is away, and finds out by itself what is due.
_SCHEDULE = text(
    """
    INSERT INTO job (tenant, kind, record_id, pipeline, stage, version, run_at, traceparent)
    VALUES (:tenant, 'session', :session_id, :pipeline, :stage, 1, now() + make_interval(secs => :delay),
            :traceparent)
    ON CONFLICT (tenant, kind, record_id, pipeline, generation) DO NOTHING
    """
)


async def schedule_summary(tx: Transaction, session_id: str) -> None:
    """Make a worker look what of a session is to be summarised, unless one is going to look already."""
    await _schedule(tx, session_id, SUMMARIZE, 0)


async def schedule_window_expiry(tx: Transaction, session_id: str, delay: float) -> None:
    """Make a worker look in `delay` seconds whether a session is idle, unless one is going to already."""
    await _schedule(tx, session_id, EXPIRE_WINDOW, delay)


async def _schedule(tx: Transaction, session_id: str, stage: Stage, delay: float) -> None:
    names = {"tenant": tx.tenant, "session_id": session_id, "pipeline": stage.pipeline, "stage": stage.name}
    await tx.fetch(_SCHEDULE, names | {"delay": delay, "traceparent": traces.traceparent()})
