"""Begin runs: on demand, and by the clock some time after a scope became active."""

from collections.abc import Sequence
from typing import Any

import uuid_utils
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.dreams.runs import queries
from shared.dreams.runs.dream_run import Run, RunState
from shared.foundation import errors, stages
from shared.foundation.config import Settings
from shared.foundation.scope import Scope
from shared.foundation.stages import DreamPass, RecordKind
from shared.jobs import queries as job_queries
from shared.platform.idempotency.queries import IdempotencyKey, idempotent
from shared.platform.resources import Resources


async def start_on_demand(
    resources: Resources,
    scope: Scope,
    actor: str,
    passes: Sequence[DreamPass],
    *,
    dry_run: bool,
    key: IdempotencyKey | None = None,
) -> dict[str, Any]:
    """Begin a run now and return it as JSON; errors.Conflict while the scope has one."""
    async with (
        resources.postgres.for_tenant(scope.tenant) as connection,
        idempotent(connection, scope.tenant, key) as request,
    ):
        if request.stored is not None:
            return dict(request.stored)
        begun = await start_run(connection, resources.settings, scope, actor, passes, dry_run=dry_run)
        if begun is None:
            raise errors.Conflict("this scope is being dreamed over already")
        answer = begun.model_dump(mode="json")
        await request.store(answer, user_id=scope.user_id)
    resources.publisher.wake(stages.DREAM_PASS)
    return answer


async def start_run(
    connection: AsyncConnection,
    settings: Settings,
    scope: Scope,
    actor: str,
    passes: Sequence[DreamPass],
    *,
    dry_run: bool = False,
) -> Run | None:
    """Write a run with its passes and make it due; None while the scope has one."""
    wanted = [
        name
        for name in DreamPass
        if name in (passes or DreamPass) and name not in settings.dream_disabled_passes
    ]
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
    await job_queries.enqueue(connection, scope.tenant, RecordKind.DREAM_RUN, stages.DREAM_PASS, {run_id: 1})
    return await queries.get(connection, scope.tenant, run_id)
