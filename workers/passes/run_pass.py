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

from shared.conversation.turns.turn import turn_key_of
from shared.dreams.runs import apply, recheck
from shared.dreams.runs import queries as dream_queries
from shared.dreams.runs.applied_changes import AppliedChanges
from shared.dreams.runs.dream_run import PassState, Run, RunState
from shared.dreams.runs.hold_doubted import hold_doubted
from shared.dreams.runs.outcome import Outcome, PassSkipped
from shared.dreams.skill_proposals import decide as decide_proposals
from shared.foundation import errors
from shared.foundation.stages import DreamPass, ReasonCode, RecordKind, stage_of_pass
from shared.infra.transaction import Transaction
from shared.jobs import claim as job_claim
from shared.jobs import counters as fleet_counters
from shared.jobs import dream_schedule, mining_schedule
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.memory.longterm import save
from shared.memory.longterm.memory import Memory
from shared.platform.resources import Resources
from shared.records.transaction import RecordTransaction
from workers.passes.dispatch import dispatch_next_passes, get_run_or_end
from workers.passes.pass_context import LeaseLost, PassContext
from workers.runtime import drain as job_drain

Decide = Callable[[PassContext], Awaitable[Outcome]]
"""A pass: it reads and asks the model, writes nothing, and returns what is to be changed."""
MAX_INVALID_REPLIES = 2
log = structlog.get_logger()


async def run_pass(resources: Resources, tenant: str, run_id: str, name: DreamPass, decide: Decide) -> str:
    """Run a pass, if the run waits for it and no other worker has its job. `decide` is the pass itself.

    Return the result of the task: the state of the pass with its reason, `not due`, `other_pass_due`,
    `lease_lost`, or `rescheduled: …`.
    """
    stage, lease = stage_of_pass(name), resources.settings.dream_lease
    async with resources.postgres.for_tenant(tenant) as tx:
        job = await job_claim.claim_one(tx, RecordKind.DREAM_RUN, run_id, stage, lease)
        run = None if job is None else await get_run_or_end(tx, job)
    if job is None or run is None:
        return "not due"
    await dispatch_next_passes(resources)  # this pass no longer waits: another may take its place
    if run.next_pass is None or run.next_pass.name is not name:
        error = errors.Unavailable("dream", "another pass is due")
        await job_drain.reschedule(resources, stage, [job], error, ReasonCode.NOT_READY)
        return "other_pass_due"
    try:
        return await _run_claimed(PassContext(resources, run, job, name), decide)
    except asyncio.CancelledError:
        async with resources.postgres.across_tenants() as tx:
            await job_queries.release(tx, [job])
        raise


async def _run_claimed(context: PassContext, decide: Decide) -> str:
    await context.save_progress()
    try:
        async with asyncio.timeout(context.time_limit_seconds):
            outcome = await decide(context)
    except PassSkipped as error:
        return await _end_pass(context, PassState.SKIPPED, str(error), Outcome(has_more=error.has_more))
    except LeaseLost:
        return "lease_lost"
    except (errors.Unavailable, errors.InvalidModelReply, TimeoutError) as error:
        return await _reschedule_or_fail(context, error)
    return await _end_pass(context, PassState.DONE, None, outcome)


async def _reschedule_or_fail(context: PassContext, error: Exception) -> str:
    """Reschedule the pass, or end it as failed after its last attempt."""
    reason = str(error) or "it took too long"
    if isinstance(error, errors.Unavailable) and not error.uses_attempt:  # an outage never ends a pass
        await job_drain.reschedule(context.resources, context.stage, [context.job], error)
        return f"rescheduled: {reason}"
    if context.job.attempts >= _max_attempts(context, error):
        return await _end_pass(context, PassState.FAILED, reason, _failure_outcome(context))
    is_invalid_reply = isinstance(error, errors.InvalidModelReply)
    unavailable = error if isinstance(error, errors.Unavailable) else errors.Unavailable("dream", reason)
    reason_code = ReasonCode.INVALID_REPLY if is_invalid_reply else ReasonCode.UNAVAILABLE
    await job_drain.reschedule(
        context.resources, context.stage, [context.job], unavailable, reason_code, uses_attempt=True
    )
    return f"rescheduled: {reason}"


def _max_attempts(context: PassContext, error: Exception) -> int:
    if isinstance(error, errors.CutOffReply):  # smaller parts were asked already
        return 1
    is_invalid_reply = isinstance(error, errors.InvalidModelReply)
    return MAX_INVALID_REPLIES if is_invalid_reply else context.resources.settings.job_max_attempts


def _failure_outcome(context: PassContext) -> Outcome:
    """Return the outcome of a pass that has failed for good: what it was given counts as read.

    Otherwise what a model can't process would be read again by every run. What it was not given, such as a
    turn that arrived during the last attempt, stays unread.
    """
    inputs = context.inputs
    if inputs is None and context.run.next_pass is not None:  # given by an attempt whose worker died
        inputs = context.run.next_pass.inputs
    inputs = inputs or {}
    return Outcome(
        inputs=inputs,
        turns=[turn_key_of(record_id) for record_id in inputs.get("turns", ())],
        read_signal_ids=list(inputs.get("signals", ())),
        refused_batch_sizes=context.refused_batch_sizes,
        has_more=True,
    )


async def _end_pass(context: PassContext, state: PassState, reason: str | None, outcome: Outcome) -> str:
    """Apply the outcome, end the pass and advance the run, in one transaction.

    Nothing is written if the job's lease token is no longer valid.
    """
    resources, run = context.resources, context.run
    async with resources.transaction(run.tenant) as tx:
        # Before the job, as an erasure does: so it sees the job of the next pass.
        await dream_queries.get(tx, run.id, lock=True)
        if context.job.id not in await job_queries.complete(tx, [context.job]):
            return "lease_lost"
        changed_memories = await _apply_outcome(tx, context, state, reason, outcome)
        await save.index(tx, changed_memories)
        await _advance_run(tx, run)
    await dispatch_next_passes(resources)
    log.info("pass_ended", run=run.id, dream_pass=context.name, state=state, reason=reason)
    return state if reason is None else f"{state}: {reason}"


async def _apply_outcome(
    tx: RecordTransaction, context: PassContext, state: PassState, reason: str | None, outcome: Outcome
) -> list[Memory]:
    """Apply the outcome unless the run is dry, and save it with the pass. Return the changed memories."""
    run, name = context.run, context.name
    applied_changes = AppliedChanges()
    outcome = await recheck.without_deleted(tx, outcome)
    if not run.dry_run:
        applied_changes = await apply.apply(tx, run, name, outcome)
        settings = context.resources.settings
        outcome = await hold_doubted(tx, settings, run, outcome, applied_changes)
        applied_changes.skill_counts, skipped = await decide_proposals.store(
            tx, context.resources, run.scope, run.id, name, outcome.skill_proposals
        )
        applied_changes.skipped += skipped
        await apply.record_progress(tx, run, name, outcome, applied_changes)
        if outcome.has_more:
            await _schedule_rest(tx, context, state)
    await dream_queries.end_pass(
        tx,
        run,
        name,
        state,
        reason,
        inputs=outcome.inputs,
        record_ids=outcome.record_ids,
        proposed=outcome.proposed,
        rejections=[*outcome.rejections, *applied_changes.skipped],
        applied=applied_changes.counts,
    )
    await _count_pass(tx, context, state, outcome, applied_changes)
    return list(applied_changes.changed_memories.values())


async def _schedule_rest(tx: Transaction, context: PassContext, state: PassState) -> None:
    """Make the scope due again for what the pass has left."""
    settings, scope = context.resources.settings, context.run.scope
    if context.name is DreamPass.EVALUATE_SESSIONS:
        delay = 0.0 if state is PassState.DONE else settings.session_idle_seconds
        await dream_schedule.schedule_evaluation(tx, settings, scope, delay)
    elif context.name is DreamPass.MINE_FACTS:
        delay = 0.0 if state is PassState.DONE else mining_schedule.RETRY_SECONDS
        await mining_schedule.schedule(tx, scope, delay)
    else:
        await dream_schedule.schedule_dream(tx, settings, scope)


async def _count_pass(
    tx: Transaction, context: PassContext, state: PassState, outcome: Outcome, applied_changes: AppliedChanges
) -> None:
    """Add the pass to the fleet counters of dreams."""
    rejections = Counter(rejection["code"] for rejection in [*outcome.rejections, *applied_changes.skipped])
    changes = Counter(
        ":".join(filter(None, (change["action"], change["reason"])))
        for change in [*applied_changes.diff, *applied_changes.graph.diff]
    )
    await fleet_counters.increment(tx, "dream_passes", {f"{context.name}:{state}": 1})
    await fleet_counters.increment(tx, "dream_seconds", {context.name: context.seconds})
    await fleet_counters.increment(tx, "dream_changes", changes + Counter(applied_changes.skill_counts))
    await fleet_counters.increment(tx, "dream_rejections", rejections)


async def _advance_run(tx: Transaction, run: Run) -> None:
    """Make the run due for its next pass, or end the run."""
    current_run = await dream_queries.get(tx, run.id)
    if current_run is not None and current_run.next_pass is not None:
        stage = stage_of_pass(current_run.next_pass.name)
        await job_queries.enqueue(tx, run.tenant, RecordKind.DREAM_RUN, stage, {run.id: 1})
        return
    await dream_queries.end_run(tx, run, RunState.DONE)
    await fleet_counters.increment(tx, "dream_runs", {"dry" if run.dry_run else "done": 1})


async def fail_current_pass(resources: Resources, job: Job) -> None:
    """End the pass of an exhausted job as failed and advance its run, or end the job if that is gone."""
    async with resources.postgres.for_tenant(job.tenant) as tx:
        run = await get_run_or_end(tx, job)
    if run is not None and run.next_pass is not None:
        context = PassContext(resources, run, job, run.next_pass.name)
        reason = f"its worker ended {job.attempts} times"
        await _end_pass(context, PassState.FAILED, reason, _failure_outcome(context))
