"""Start dream runs: when a caller asks for one, and on schedule after a scope was active."""

from collections.abc import Mapping, Sequence
from typing import Any

import uuid_utils

from shared.dreams.runs import queries
from shared.dreams.runs.dream_run import Run, RunState
from shared.foundation import errors, stages
from shared.foundation.config import Settings
from shared.foundation.scope import Scope
from shared.foundation.stages import DreamPass, RecordKind
from shared.infra.transaction import Transaction
from shared.jobs import queries as job_queries
from shared.jobs import removals
from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent
from shared.platform.resources import Resources
from shared.records.transaction import RecordTransaction


async def start_on_demand(
    resources: Resources,
    scope: Scope,
    actor: str,
    passes: Sequence[DreamPass],
    *,
    dry_run: bool,
    key: IdempotencyKey | None = None,
) -> dict[str, Any]:
    """Start a run now and return it as JSON.

    Raises errors.Conflict while the scope has a running one, and errors.Invalid if no pass is left to run.
    """
    async with resources.transaction(scope.tenant) as tx, idempotent(tx, key) as request:
        if request.stored is not None:
            return dict(request.stored)
        await removals.delay_erasures(tx, scope)
        run = await start_run(tx, resources.settings, scope, actor, passes, dry_run=dry_run)
        if run is None:
            raise errors.Conflict("a dream run over this scope is running already")
        response = run.model_dump(mode="json")
        await request.store(response, user_id=scope.user_id)
        wake_first_pass(tx, response)
    return response


def wake_first_pass(tx: RecordTransaction, run: Mapping[str, Any]) -> None:
    """Tell the workers of its first pass that a run, given as JSON, has started."""
    tx.wake(stages.stage_of_pass(DreamPass(run["passes"][0]["name"])))


async def start_run(
    tx: Transaction,
    settings: Settings,
    scope: Scope,
    actor: str,
    passes: Sequence[DreamPass],
    *,
    dry_run: bool = False,
) -> Run | None:
    """Insert a run with its passes, make it due and return it, or None while the scope has one.

    The caller has called `removals.delay_erasures` before it locked anything: an erasure that doesn't see the
    run would leave it behind. No `passes` means all of them. Raises errors.Invalid if every one of them is
    switched off.
    """
    enabled_passes = [
        name
        for name in DreamPass
        if name in (passes or DreamPass) and name not in settings.dream_disabled_passes
    ]
    if not enabled_passes:
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
    if not await queries.add_run(tx, values, enabled_passes):
        return None
    stage = stages.stage_of_pass(enabled_passes[0])
    await job_queries.enqueue(tx, scope.tenant, RecordKind.DREAM_RUN, stage, {run_id: 1})
    return await queries.get(tx, run_id)
