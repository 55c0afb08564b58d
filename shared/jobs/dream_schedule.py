"""Make a scope due for dreaming. This module writes one job and knows nothing else about dreams."""

from datetime import UTC, datetime

import orjson
from cronsim import CronSim
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation import stages
from shared.foundation.config import Settings
from shared.foundation.scope import Scope

# A scope that becomes active is due a while after, and not before the pause since its last run
# is over; or at the hour that was set. While it waits, or is being dreamed over, further activity
# changes nothing.
_SCHEDULE = text(
    """
    INSERT INTO job (tenant, kind, record_id, pipeline, stage, version, run_at)
    SELECT :tenant, 'dream_scope', :record_id, 'dream', :stage, 1,
           coalesce(CAST(:hour AS timestamptz),
                    greatest(now() + make_interval(secs => :first),
                             (SELECT max(created_at) FROM dream_run
                              WHERE tenant = :tenant AND agent_id = :agent
                                AND user_id IS NOT DISTINCT FROM CAST(:user AS text))
                             + make_interval(secs => :every)))
    ON CONFLICT (tenant, kind, record_id, pipeline, generation) DO NOTHING
    """
)


async def schedule_dream(connection: AsyncConnection, settings: Settings, scope: Scope) -> None:
    """Make a scope due for dreaming, some time from now, unless it is already."""
    if not settings.dream_enabled:
        return
    values = {
        "tenant": scope.tenant,
        "record_id": scope_to_record_id(scope),
        "agent": scope.agent_id,
        "user": scope.user_id,
        "stage": stages.DREAM_START.name,
        "first": settings.dream_initial_delay,
        "every": settings.dream_interval,
        "hour": next_cron_time(settings.dream_cron, datetime.now(UTC)),
    }
    await connection.execute(_SCHEDULE, values)


def next_cron_time(cron: str | None, now: datetime) -> datetime | None:
    """Return the next time that a cron expression names, in UTC; None without one."""
    return None if cron is None else next(CronSim(cron, now))


def scope_to_record_id(scope: Scope) -> str:
    """Return the name of a scope in the work table."""
    return orjson.dumps([scope.agent_id, scope.user_id]).decode()


def scope_from_record_id(tenant: str, record_id: str) -> Scope:
    """Return the scope that `ref_of` named."""
    agent_id, user_id = orjson.loads(record_id)
    return Scope(tenant, agent_id, user_id)
