"""Begin runs: on demand, and by the clock some time after a scope became active."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import orjson
import uuid_utils
from cronsim import CronSim
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.dreams.runs import queries
from shared.dreams.runs.dream_run import PassName, Run, RunState
from shared.foundation import errors, stages
from shared.foundation.config import Settings
from shared.foundation.scope import Scope
from shared.foundation.stages import Kind
from shared.jobs import queries as job_queries
from shared.platform.idempotency.queries import RequestKey, idempotent
from shared.platform.resources import Resources


async def on_demand(
    resources: Resources,
    scope: Scope,
    actor: str,
    passes: Sequence[PassName],
    *,
    dry_run: bool,
    key: RequestKey | None = None,
) -> dict[str, Any]:
    """Begin a run now and return it as JSON; errors.Conflict while the scope has one."""
    async with (
        resources.postgres.tenant(scope.tenant) as connection,
        idempotent(connection, scope.tenant, key) as request,
    ):
        if request.stored is not None:
            return dict(request.stored)
        begun = await begin(connection, resources.settings, scope, actor, passes, dry_run=dry_run)
        if begun is None:
            raise errors.Conflict("this scope is being dreamed over already")
        answer = begun.model_dump(mode="json")
        await request.store(answer, user_id=scope.user_id)
    resources.bell.ring(stages.DREAM_PASS)
    return answer


async def begin(
    connection: AsyncConnection,
    settings: Settings,
    scope: Scope,
    actor: str,
    passes: Sequence[PassName],
    *,
    dry_run: bool = False,
) -> Run | None:
    """Write a run with its passes and make it due; None while the scope has one."""
    wanted = [name for name in PassName if name in (passes or PassName) and name not in settings.dream_off]
    if not wanted:
        raise errors.Invalid("passes", "every one of them is switched off")
    run_id = str(uuid_utils.uuid7())
    values = {
        "tenant": scope.tenant,
        "id": run_id,
        "agent_id": scope.agent_id,
        "user_id": scope.user_id,
        "state": RunState.RUNNING,
        "dry_run": dry_run,
        "actor": actor,
    }
    if not await queries.add_run(connection, values, wanted):
        return None
    await job_queries.enqueue(connection, scope.tenant, Kind.RUN, stages.DREAM_PASS, {run_id: 1})
    return await queries.get(connection, scope.tenant, run_id)


# A scope that becomes active is due a while after, and not before the pause since its last run
# is over; or at the hour that was set. While it waits, or is being dreamed over, further activity
# changes nothing.
_SCHEDULE = text(
    """
    INSERT INTO work (tenant, kind, ref, track, stage, version, run_at)
    SELECT :tenant, 'scope', :ref, 'dream', :stage, 1,
           coalesce(CAST(:hour AS timestamptz),
                    greatest(now() + make_interval(secs => :first),
                             (SELECT max(created_at) FROM dream_run
                              WHERE tenant = :tenant AND agent_id = :agent
                                AND user_id IS NOT DISTINCT FROM CAST(:user AS text))
                             + make_interval(secs => :every)))
    ON CONFLICT (tenant, kind, ref, track, generation) DO NOTHING
    """
)


async def note_activity(connection: AsyncConnection, settings: Settings, scope: Scope) -> None:
    """Make a scope due for dreaming, some time from now, unless it is already."""
    if not settings.dream_enabled:
        return
    values = {
        "tenant": scope.tenant,
        "ref": ref_of(scope),
        "agent": scope.agent_id,
        "user": scope.user_id,
        "stage": stages.DREAM.name,
        "first": settings.dream_first_after,
        "every": settings.dream_every,
        "hour": next_hour(settings.dream_cron, datetime.now(UTC)),
    }
    await connection.execute(_SCHEDULE, values)


def next_hour(cron: str | None, now: datetime) -> datetime | None:
    """Return the next time that a cron expression names, in UTC; None without one."""
    return None if cron is None else next(CronSim(cron, now))


def ref_of(scope: Scope) -> str:
    """Return the name of a scope in the work table."""
    return orjson.dumps([scope.agent_id, scope.user_id]).decode()


def scope_of(tenant: str, ref: str) -> Scope:
    """Return the scope that `ref_of` named."""
    agent_id, user_id = orjson.loads(ref)
    return Scope(tenant, agent_id, user_id)
