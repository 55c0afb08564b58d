"""Schedule a dream run for a scope. This module writes one job and knows nothing else about dreams."""

from datetime import UTC, datetime

import orjson
from cronsim import CronSim
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation import stages
from shared.foundation.config import Settings
from shared.foundation.scope import Scope

# With a cron expression, the job of an active scope is due at the next cron time. Otherwise it is due after
# an initial delay, and not before the interval since the scope's last run has passed. While the job exists,
# more activity has no effect.
_SCHEDULE = text(
    """
    INSERT INTO job (tenant, kind, record_id, pipeline, stage, version, run_at)
    SELECT :tenant, 'dream_scope', :record_id, 'dream', :stage, 1,
           coalesce(CAST(:cron_time AS timestamptz),
                    greatest(now() + make_interval(secs => :initial_delay),
                             (SELECT max(created_at) FROM dream_run
                              WHERE tenant = :tenant AND agent_id = :agent_id
                                AND user_id IS NOT DISTINCT FROM CAST(:user_id AS text))
                             + make_interval(secs => :interval)))
    ON CONFLICT (tenant, kind, record_id, pipeline, generation) DO NOTHING
    """
)


async def schedule_dream(connection: AsyncConnection, settings: Settings, scope: Scope) -> None:
    """Schedule a dream run for a scope, unless one is scheduled already or dreams are disabled."""
    if not settings.dream_enabled:
        return
    values = {
        "tenant": scope.tenant,
        "record_id": scope_to_record_id(scope),
        "agent_id": scope.agent_id,
        "user_id": scope.user_id,
        "stage": stages.DREAM_START.name,
        "initial_delay": settings.dream_initial_delay,
        "interval": settings.dream_interval,
        "cron_time": next_cron_time(settings.dream_cron, datetime.now(UTC)),
    }
    await connection.execute(_SCHEDULE, values)


_CANCEL_RUNS = text(
    """
    DELETE FROM job WHERE tenant = :tenant AND kind = 'dream_run' AND record_id IN (
        SELECT id FROM dream_run WHERE tenant = :tenant AND state = 'running'
        AND (user_id = CAST(:user_id AS text) OR agent_id = CAST(:agent_id AS text)))
    """
)
_CANCEL_SCOPES = text(
    """
    DELETE FROM job WHERE tenant = :tenant AND kind = 'dream_scope'
    AND (CAST(record_id AS jsonb) ->> 1 = CAST(:user_id AS text)
         OR CAST(record_id AS jsonb) ->> 0 = CAST(:agent_id AS text))
    """
)


async def cancel_runs(
    connection: AsyncConnection, tenant: str, *, user_id: str | None = None, agent_id: str | None = None
) -> None:
    """Delete the jobs of running dreams of a user, of all agents, or of an agent, of all users.

    This waits for a pass that is recording its outcome. One that is still thinking loses its claim. As a
    pass completes its job before it locks sessions and memories, call this before locking any.
    """
    values = {"tenant": tenant, "user_id": user_id, "agent_id": agent_id}
    await connection.execute(_CANCEL_RUNS, values)


async def cancel_scopes(
    connection: AsyncConnection, tenant: str, *, user_id: str | None = None, agent_id: str | None = None
) -> None:
    """Delete the jobs that would start dreams of a user or an agent. Memories are locked before this."""
    values = {"tenant": tenant, "user_id": user_id, "agent_id": agent_id}
    await connection.execute(_CANCEL_SCOPES, values)


def next_cron_time(cron: str | None, now: datetime) -> datetime | None:
    """Return the next time of a cron expression in UTC, or None without an expression."""
    return None if cron is None else next(CronSim(cron, now))


def scope_to_record_id(scope: Scope) -> str:
    """Return the record id that stands for a scope in its job."""
    return orjson.dumps([scope.agent_id, scope.user_id]).decode()


def scope_from_record_id(tenant: str, record_id: str) -> Scope:
    """Return the scope of a record id that `scope_to_record_id` returned."""
    agent_id, user_id = orjson.loads(record_id)
    return Scope(tenant, agent_id, user_id)
