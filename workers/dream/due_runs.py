"""Begin runs for scopes that were active some time ago and are quiet now."""

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.turns.table import turn
from shared.dreams.runs import start
from shared.foundation.scope import Scope
from shared.foundation.stages import DREAM_START, ReasonCode
from shared.infra.postgres import tenant_filter
from shared.jobs import dream_schedule
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.platform.resources import Resources
from workers.dream import dispatch
from workers.runtime import drain as job_drain
from workers.runtime.drain import ClaimCounts

_CLOCK = "clock"


async def start_due_runs(resources: Resources) -> ClaimCounts:
    """Begin a run for each scope that is due; return which scopes were looked at."""
    return await job_drain.drain(resources, DREAM_START, _begin_all)


async def _begin_all(resources: Resources, claims: Sequence[Job]) -> None:
    for claim in claims:
        await _begin(resources, claim)


async def _begin(resources: Resources, claim: Job) -> None:
    scope = dream_schedule.scope_from_record_id(claim.tenant, claim.record_id)
    async with resources.postgres.for_tenant(claim.tenant) as connection:
        if not await _is_active(connection, resources, scope):
            if claim.id not in await job_queries.complete(connection, [claim]):
                return
            run = await start.start_run(connection, resources.settings, scope, _CLOCK, ())
            if run is None:  # somebody's own run is under way; what came since is for the next one
                await dream_schedule.schedule_dream(connection, resources.settings, scope)
        else:
            quiet = resources.settings.dream_quiet_period
            await job_queries.reschedule(
                connection,
                claim,
                "the scope is active",
                quiet,
                reason_code=ReasonCode.NOT_READY,
                refund=True,
            )
            return
    dispatch.dispatch_next_pass(resources, run)


async def _is_active(connection: AsyncConnection, resources: Resources, scope: Scope) -> bool:
    recently = turn.c.received_at > func.now() - timedelta(seconds=resources.settings.dream_quiet_period)
    same_user = turn.c.user_id.is_not_distinct_from(scope.user_id)
    mine = (tenant_filter(turn, scope.tenant), turn.c.agent_id == scope.agent_id, same_user)
    return await connection.scalar(select(turn.c.seq).where(*mine, recently).limit(1)) is not None
