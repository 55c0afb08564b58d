"""Walk through a run: claim, let the pass decide, apply, hand on to the next pass.

A kill at any line leaves the old state or the new: what a pass decided is applied in the
transaction that also ends the pass, moves the run on, and holds the claim's token. A pass that
fails as often as allowed is noted as failed and the next one begins: no pass gates another.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.dreams.runs import apply, unread_turns
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

Dream = Callable[[PassContext], Awaitable[Outcome]]
MAX_INVALID_REPLIES = 2
PASSES: dict[DreamPass, Dream] = {
    DreamPass.DEDUPLICATE: deduplicate.run,
    DreamPass.EVALUATE_SESSIONS: session_evaluation.run,
    DreamPass.CONSOLIDATE: consolidate.run,
    DreamPass.MINE_ANTI_PATTERNS: anti_patterns.run,
    DreamPass.INFER_PREFERENCES: preferences.run,
    DreamPass.EXTRACT_EPISODES: episodes.run,
}
events = structlog.get_logger()


async def run_pass(resources: Resources, tenant: str, run_id: str, name: DreamPass) -> str:
    """Do one pass of a run, if the run waits for it and nobody else does it; say what came of it."""
    async with resources.postgres.for_tenant(tenant) as connection:
        lease = resources.settings.dream_lease
        claim = await job_claim.claim_one(connection, tenant, RecordKind.DREAM_RUN, run_id, DREAM_PASS, lease)
        run = await dream_queries.get(connection, tenant, run_id)
    if claim is None or run is None:
        return "not due"
    if run.next_pass is None or run.next_pass.name is not name:
        error = errors.Unavailable("dream", "another pass is due")
        await job_drain.reschedule(resources, DREAM_PASS, [claim], error, ReasonCode.NOT_READY)
        return "other_pass_due"
    try:
        return await _do(PassContext(resources, run, claim, name))
    except asyncio.CancelledError:
        async with resources.postgres.across_tenants() as connection:
            await job_queries.release(connection, [claim])
        raise


async def _do(night: PassContext) -> str:
    await night.save_progress()
    try:
        async with asyncio.timeout(night.time_limit_seconds):
            outcome = await PASSES[night.name](night)
    except PassSkipped as why:
        return await _end(night, PassState.SKIPPED, str(why), Outcome())
    except (errors.Unavailable, errors.InvalidModelReply, TimeoutError) as error:
        return await _failed(night, error)
    return await _end(night, PassState.DONE, None, outcome)


async def _failed(night: PassContext, error: Exception) -> str:
    """Try again later, or note the failure and go on to the next pass."""
    reason = str(error) or "it took too long"
    allowed = (
        MAX_INVALID_REPLIES
        if isinstance(error, errors.InvalidModelReply)
        else night.resources.settings.job_max_attempts
    )
    if night.claim.attempts < allowed:
        away = error if isinstance(error, errors.Unavailable) else errors.Unavailable("dream", reason)
        await job_drain.reschedule(night.resources, DREAM_PASS, [night.claim], away, _reason_code(error))
        return f"rescheduled: {reason}"
    return await _end(night, PassState.FAILED, reason, await _given_up(night))


def _reason_code(error: Exception) -> ReasonCode:
    return ReasonCode.INVALID_REPLY if isinstance(error, errors.InvalidModelReply) else ReasonCode.UNAVAILABLE


async def _given_up(night: PassContext) -> Outcome:
    """After its last try a failed pass lets go of the turns it could not use (CV2)."""
    if night.name not in (
        DreamPass.MINE_ANTI_PATTERNS,
        DreamPass.INFER_PREFERENCES,
        DreamPass.EXTRACT_EPISODES,
    ):
        return Outcome()
    async with night.resources.postgres.for_tenant(night.run.tenant) as connection:
        limit = night.resources.settings.dream_max_turns
        turns = await unread_turns.list_unread(connection, night.run.scope, night.name, limit)
    return Outcome(turns=[(one.session_id, one.seq) for one in turns])


async def _end(night: PassContext, state: PassState, reason: str | None, outcome: Outcome) -> str:
    """Apply, note, and move the run on, in one transaction that the claim's token guards."""
    resources, run = night.resources, night.run
    async with resources.postgres.for_tenant(run.tenant) as connection:
        if night.claim.id not in await job_queries.complete(connection, [night.claim]):
            return "lease_lost"
        changed = await _apply(connection, night, state, reason, outcome)
        claims = await save.enqueue_jobs(connection, run.tenant, changed)
        after = await _advance(connection, run)
    await resources.index_writer.write_through([memory_document.document(entry) for entry in changed], claims)
    dispatch_next_pass(resources, after)
    events.info("pass_ended", run=run.id, dream_pass=night.name, state=state, reason=reason)
    return state if reason is None else f"{state}: {reason}"


async def _apply(
    connection: AsyncConnection, night: PassContext, state: PassState, reason: str | None, outcome: Outcome
) -> list[Memory]:
    run, name = night.run, night.name
    applied = apply.Applied()
    if not run.dry_run:
        applied = await apply.apply(connection, run, name, outcome)
        await apply.record_progress(connection, run, name, outcome, applied)
    if outcome.has_more and not run.dry_run:
        await dream_schedule.schedule_dream(connection, night.resources.settings, run.scope)
    await dream_queries.end_pass(
        connection,
        run,
        name,
        state,
        reason,
        inputs=outcome.inputs,
        proposed=outcome.proposed,
        rejections=[*outcome.rejections, *applied.skipped],
        applied=applied.counts,
        **night.model_columns(),
    )
    await _tally(connection, night, state, outcome, applied)
    return list(applied.changed.values())


async def _tally(
    connection: AsyncConnection,
    night: PassContext,
    state: PassState,
    outcome: Outcome,
    applied: apply.Applied,
) -> None:
    rejected = Counter(one["code"] for one in [*outcome.rejections, *applied.skipped])
    done = Counter(":".join(filter(None, (one["action"], one["reason"]))) for one in applied.diff)
    tokens = {"input": night.input_tokens, "output": night.output_tokens}
    await fleet_counters.increment(connection, "dream_passes", {f"{night.name}:{state}": 1})
    await fleet_counters.increment(connection, "dream_seconds", {night.name: night.seconds})
    await fleet_counters.increment(connection, "dream_changes", done)
    await fleet_counters.increment(connection, "dream_rejections", rejected)
    await fleet_counters.increment(connection, "dream_tokens", tokens)
    await fleet_counters.increment(connection, "dream_cost_usd", {night.name: float(night.cost or 0)})


async def _advance(connection: AsyncConnection, run: Run) -> Run | None:
    """Make the run due for its next pass, or end it."""
    after = await dream_queries.get(connection, run.tenant, run.id)
    if after is not None and after.next_pass is not None:
        await job_queries.enqueue(connection, run.tenant, RecordKind.DREAM_RUN, DREAM_PASS, {run.id: 1})
        return after
    await dream_queries.end_run(connection, run, RunState.DONE)
    await fleet_counters.increment(connection, "dream_runs", {"dry" if run.dry_run else "done": 1})
    return None


async def fail_current_pass(resources: Resources, claim: Job) -> None:
    """End the pass whose worker died as often as allowed, and go on."""
    async with resources.postgres.for_tenant(claim.tenant) as connection:
        run = await dream_queries.get(connection, claim.tenant, claim.record_id)
    if run is not None and run.next_pass is not None:
        night = PassContext(resources, run, claim, run.next_pass.name)
        await _end(night, PassState.FAILED, f"its worker ended {claim.attempts} times", Outcome())
