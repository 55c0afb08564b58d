"""Run one pass of a dream run: claim its job, let the pass decide, apply the outcome, start the next pass.

A worker that is killed at any point leaves either the state before the pass or the state after it. The
outcome of a pass is applied in the transaction that also ends the pass, makes the run due for the next one,
and deletes the job if its lease token is still valid. A pass that has failed too often ends as failed, and
the next pass begins: no pass depends on another one.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.dreams.runs import apply, recheck, unread_turn_queries
from shared.dreams.runs import queries as dream_queries
from shared.dreams.runs.dream_run import PassState, Run, RunState
from shared.dreams.runs.outcome import Outcome, PassSkipped
from shared.foundation import errors
from shared.foundation.stages import DREAM_PASS, DreamPass, ReasonCode, RecordKind
from shared.jobs import claim as job_claim
from shared.jobs import counters as fleet_counters
from shared.jobs import dream_schedule
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.memory.longterm import index_document as memory_document
from shared.memory.longterm import save
from shared.memory.longterm.memory import Memory
from shared.platform.resources import Resources
from workers.dream import anti_patterns, consolidate, deduplicate, episodes, preferences, session_evaluation
from workers.dream.dispatch import dispatch_next_pass
from workers.dream.pass_context import PassContext
from workers.runtime import drain as job_drain

RunPass = Callable[[PassContext], Awaitable[Outcome]]
MAX_INVALID_REPLIES = 2
PASSES: dict[DreamPass, RunPass] = {
    DreamPass.DEDUPLICATE: deduplicate.run,
    DreamPass.EVALUATE_SESSIONS: session_evaluation.run,
    DreamPass.CONSOLIDATE: consolidate.run,
    DreamPass.MINE_ANTI_PATTERNS: anti_patterns.run,
    DreamPass.INFER_PREFERENCES: preferences.run,
    DreamPass.EXTRACT_EPISODES: episodes.run,
}
_READS_TURNS = {DreamPass.MINE_ANTI_PATTERNS, DreamPass.INFER_PREFERENCES, DreamPass.EXTRACT_EPISODES}
log = structlog.get_logger()


async def run_pass(resources: Resources, tenant: str, run_id: str, name: DreamPass) -> str:
    """Run a pass, if the run waits for it and no other worker has its job.

    Return the result of the task: the state of the pass with its reason, `not due`, `other_pass_due`,
    `lease_lost`, or `rescheduled: …`.
    """
    async with resources.postgres.for_tenant(tenant) as connection:
        lease = resources.settings.dream_lease
        job = await job_claim.claim_one(connection, tenant, RecordKind.DREAM_RUN, run_id, DREAM_PASS, lease)
        run = await dream_queries.get(connection, tenant, run_id)
    if job is None or run is None:
        return "not due"
    if run.next_pass is None or run.next_pass.name is not name:
        error = errors.Unavailable("dream", "another pass is due")
        await job_drain.reschedule(resources, DREAM_PASS, [job], error, ReasonCode.NOT_READY)
        return "other_pass_due"
    try:
        return await _run_claimed(PassContext(resources, run, job, name))
    except asyncio.CancelledError:
        async with resources.postgres.across_tenants() as connection:
            await job_queries.release(connection, [job])
        raise


async def _run_claimed(context: PassContext) -> str:
    await context.save_progress()
    try:
        async with asyncio.timeout(context.time_limit_seconds):
            outcome = await PASSES[context.name](context)
    except PassSkipped as error:
        return await _end_pass(context, PassState.SKIPPED, str(error), Outcome())
    except (errors.Unavailable, errors.InvalidModelReply, TimeoutError) as error:
        return await _reschedule_or_fail(context, error)
    return await _end_pass(context, PassState.DONE, None, outcome)


async def _reschedule_or_fail(context: PassContext, error: Exception) -> str:
    """Reschedule the pass, or end it as failed after its last attempt."""
    reason = str(error) or "it took too long"
    is_invalid_reply = isinstance(error, errors.InvalidModelReply)
    max_attempts = MAX_INVALID_REPLIES if is_invalid_reply else context.resources.settings.job_max_attempts
    if context.job.attempts >= max_attempts:
        return await _end_pass(context, PassState.FAILED, reason, await _failure_outcome(context))
    unavailable = error if isinstance(error, errors.Unavailable) else errors.Unavailable("dream", reason)
    reason_code = ReasonCode.INVALID_REPLY if is_invalid_reply else ReasonCode.UNAVAILABLE
    await job_drain.reschedule(context.resources, DREAM_PASS, [context.job], unavailable, reason_code)
    return f"rescheduled: {reason}"


async def _failure_outcome(context: PassContext) -> Outcome:
    """Return the outcome of a pass that has failed for good: its turns count as read.

    Otherwise the turns that a model can't process would be read again by every run.
    """
    if context.name not in _READS_TURNS:
        return Outcome()
    limit = context.resources.settings.dream_max_turns
    async with context.resources.postgres.for_tenant(context.run.tenant) as connection:
        turns = await unread_turn_queries.list_unread(connection, context.run.scope, context.name, limit)
    return Outcome(turns=[(turn.session_id, turn.seq) for turn in turns])


async def _end_pass(context: PassContext, state: PassState, reason: str | None, outcome: Outcome) -> str:
    """Apply the outcome, end the pass and advance the run, in one transaction.

    Nothing is written if the job's lease token is no longer valid.
    """
    resources, run = context.resources, context.run
    async with resources.postgres.for_tenant(run.tenant) as connection:
        if context.job.id not in await job_queries.complete(connection, [context.job]):
            return "lease_lost"
        changed_memories = await _apply_outcome(connection, context, state, reason, outcome)
        index_jobs = await save.enqueue_jobs(connection, run.tenant, changed_memories)
        advanced_run = await _advance_run(connection, run)
    index_documents = [memory_document.document(memory) for memory in changed_memories]
    await resources.index_writer.write_through(index_documents, index_jobs)
    dispatch_next_pass(resources, advanced_run)
    log.info("pass_ended", run=run.id, dream_pass=context.name, state=state, reason=reason)
    return state if reason is None else f"{state}: {reason}"


async def _apply_outcome(
    connection: AsyncConnection, context: PassContext, state: PassState, reason: str | None, outcome: Outcome
) -> list[Memory]:
    """Apply the outcome unless the run is dry, and save it with the pass. Return the changed memories."""
    run, name = context.run, context.name
    applied_changes = apply.AppliedChanges()
    outcome = await recheck.without_deleted(connection, run, outcome)
    if not run.dry_run:
        applied_changes = await apply.apply(connection, run, name, outcome)
        await apply.record_progress(connection, run, name, outcome, applied_changes)
        if outcome.has_more:
            await dream_schedule.schedule_dream(connection, context.resources.settings, run.scope)
    await dream_queries.end_pass(
        connection,
        run,
        name,
        state,
        reason,
        inputs=outcome.inputs,
        record_ids=outcome.record_ids,
        proposed=outcome.proposed,
        rejections=[*outcome.rejections, *applied_changes.skipped],
        applied=applied_changes.counts,
        **context.model_columns(),
    )
    await _count_pass(connection, context, state, outcome, applied_changes)
    return list(applied_changes.changed_memories.values())


async def _count_pass(
    connection: AsyncConnection,
    context: PassContext,
    state: PassState,
    outcome: Outcome,
    applied_changes: apply.AppliedChanges,
) -> None:
    """Add the pass to the fleet counters of dreams."""
    rejections = Counter(rejection["code"] for rejection in [*outcome.rejections, *applied_changes.skipped])
    changes = Counter(
        ":".join(filter(None, (change["action"], change["reason"]))) for change in applied_changes.diff
    )
    tokens = {"input": context.input_tokens, "output": context.output_tokens}
    await fleet_counters.increment(connection, "dream_passes", {f"{context.name}:{state}": 1})
    await fleet_counters.increment(connection, "dream_seconds", {context.name: context.seconds})
    await fleet_counters.increment(connection, "dream_changes", changes)
    await fleet_counters.increment(connection, "dream_rejections", rejections)
    await fleet_counters.increment(connection, "dream_tokens", tokens)
    await fleet_counters.increment(connection, "dream_cost_usd", {context.name: float(context.cost or 0)})


async def _advance_run(connection: AsyncConnection, run: Run) -> Run | None:
    """Make the run due for its next pass and return it, or end the run and return None."""
    current_run = await dream_queries.get(connection, run.tenant, run.id)
    if current_run is not None and current_run.next_pass is not None:
        await job_queries.enqueue(connection, run.tenant, RecordKind.DREAM_RUN, DREAM_PASS, {run.id: 1})
        return current_run
    await dream_queries.end_run(connection, run, RunState.DONE)
    await fleet_counters.increment(connection, "dream_runs", {"dry" if run.dry_run else "done": 1})
    return None


async def fail_current_pass(resources: Resources, job: Job) -> None:
    """End the pass of an exhausted job as failed and advance its run."""
    async with resources.postgres.for_tenant(job.tenant) as connection:
        run = await dream_queries.get(connection, job.tenant, job.record_id)
    if run is not None and run.next_pass is not None:
        context = PassContext(resources, run, job, run.next_pass.name)
        await _end_pass(context, PassState.FAILED, f"its worker ended {job.attempts} times", Outcome())
