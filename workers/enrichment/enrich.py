"""Enrich raw entries: ask the model without a transaction open, record only if the claim still stands."""

from collections.abc import Sequence
from typing import Any

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation import errors
from shared.foundation.stages import ENRICH, MemoryState, ReasonCode
from shared.infra.language_model import LanguageModel
from shared.jobs import counters as fleet_counters
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.memory.longterm import history, new_rows, save, tombstones
from shared.memory.longterm import index_document as memory_document
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm.memory import Memory, MemoryDraft
from shared.platform.directives import resolve
from shared.platform.resources import Resources
from shared.platform.spend import metered_calls
from shared.platform.spend.charge import Payer, Purpose
from workers.enrichment import parse_reply, prompt
from workers.runtime import drain as job_drain
from workers.runtime.concurrent_drain import ConcurrentDrain, ReleaseSlot
from workers.runtime.drain import ClaimCounts

ACTOR = "enrichment"
MAX_INVALID_REPLIES = 2
"""A reply that can't be used is asked for once more; the same question rarely mends on the third."""
log = structlog.get_logger()


async def enrich_pending(resources: Resources) -> ClaimCounts:
    """Enrich what is due, no more at once in this process than the model may be asked at once."""
    return await _slots.drain(resources, resources.settings.llm_concurrency)


async def enrich(resources: Resources, claim: Job, free: ReleaseSlot) -> None:
    """Work on one claimed entry; `free` its slot once the model has answered."""
    model = resources.language_model
    async with resources.postgres.for_tenant(claim.tenant) as connection:
        raw = next(iter(await memory_queries.read(connection, claim.tenant, [claim.record_id])), None)
        rules = await resolve.resolve(connection, resources.settings, claim.tenant, "memory-rules")
    if raw is None or raw.state is not MemoryState.PENDING:
        await _drop(resources, claim)
        return
    if model is None:
        await keep_as_written(resources, claim, MemoryState.FINAL, None)
        return
    try:
        found = await _ask(resources, model, raw, prompt.system_prompt(rules.text))
    except errors.OverBudget as over:
        await keep_as_written(resources, claim, MemoryState.KEPT_RAW, str(over))
    except errors.Unavailable as away:
        await _not_now(resources, claim, away)
    except errors.InvalidModelReply as bad:
        await _not_so(resources, claim, bad)
    else:
        free()
        await _record(resources, claim, found)


_slots = ConcurrentDrain(ENRICH, enrich)


async def _ask(resources: Resources, model: LanguageModel, raw: Memory, system: str) -> list[MemoryDraft]:
    payer = Payer(raw.tenant, raw.agent_id, raw.user_id, Purpose.ENRICHMENT)
    answer = await metered_calls.complete(resources, model, payer, system, prompt.user_prompt(raw))
    return parse_reply.parse_drafts(answer.text, raw, system)


async def _not_now(resources: Resources, claim: Job, away: errors.Unavailable) -> None:
    if claim.attempts >= resources.settings.job_max_attempts:
        await keep_as_written(resources, claim, MemoryState.FAILED, str(away))
    else:
        await job_drain.reschedule(resources, ENRICH, [claim], away)


async def _not_so(resources: Resources, claim: Job, bad: errors.InvalidModelReply) -> None:
    if claim.attempts >= MAX_INVALID_REPLIES:
        await keep_as_written(resources, claim, MemoryState.FAILED, str(bad))
    else:
        error = errors.Unavailable("language model", str(bad))
        await job_drain.reschedule(resources, ENRICH, [claim], error, ReasonCode.INVALID_REPLY)


async def _drop(resources: Resources, claim: Job) -> None:
    async with resources.postgres.across_tenants() as connection:
        await job_queries.complete(connection, [claim])


async def keep_as_written(resources: Resources, claim: Job, state: MemoryState, reason: str | None) -> None:
    """Leave an entry as it was written, in the state that says why."""
    async with resources.postgres.for_tenant(claim.tenant) as connection:
        await memory_queries.lock(connection, claim.tenant, [claim.record_id])
        if claim.id not in await job_queries.complete(connection, [claim]):
            return
        values = {"state": state, "failure_reason": reason}
        entry = await memory_queries.update_columns(connection, claim.tenant, claim.record_id, values)
        await history.add(connection, ACTOR, state, [entry], reason)
        await fleet_counters.increment(connection, "enrichments", {state: 1})


async def _record(resources: Resources, claim: Job, found: Sequence[MemoryDraft]) -> None:
    """Put the focused entries in the raw one's place, in one transaction."""
    async with resources.postgres.for_tenant(claim.tenant) as connection:
        # The entry before its work row, as those who change or forget it do: else each waits for the other.
        locked = await memory_queries.lock(connection, claim.tenant, [claim.record_id])
        if claim.id not in await job_queries.complete(connection, [claim]):
            return  # edited, deleted or taken over meanwhile: this answer is about what no longer stands
        raw = next(iter(locked), None)
        if raw is None or raw.state is not MemoryState.PENDING:
            return
        kept = await _without_forgotten(connection, raw, found)
        changed = await _replace(connection, raw, kept) if kept else []
        if not kept:
            entry = await memory_queries.update_columns(
                connection, claim.tenant, raw.id, {"state": MemoryState.KEPT_RAW}
            )
            await history.add(connection, ACTOR, MemoryState.KEPT_RAW, [entry])
        await fleet_counters.increment(
            connection, "enrichments", {"enriched" if kept else MemoryState.KEPT_RAW: 1}
        )
        claims = await save.enqueue_jobs(connection, claim.tenant, changed)
    await resources.index_writer.write_through([memory_document.document(entry) for entry in changed], claims)


async def _without_forgotten(
    connection: AsyncConnection, raw: Memory, found: Sequence[MemoryDraft]
) -> list[MemoryDraft]:
    """Leave out what was deleted on purpose: a model must not bring it back."""
    if not found:
        return []
    gone = await tombstones.find_deleted(connection, raw.scope, [draft.content for draft in found])
    return [draft for draft in found if draft.content not in gone]


async def _replace(connection: AsyncConnection, raw: Memory, kept: Sequence[MemoryDraft]) -> list[Memory]:
    """Archive the raw entry first, for a successor may say the very same; return all that changed."""
    await memory_queries.archive(connection, raw.tenant, [raw.id], "enriched", [])
    saved = await memory_queries.upsert(connection, raw.scope, [_row(raw, draft) for draft in kept])
    successors = [Memory.from_row(row) for row in saved]
    ids = [entry.id for entry in successors]
    archived = await memory_queries.update_columns(connection, raw.tenant, raw.id, {"superseded_by": ids})
    await history.add(
        connection, ACTOR, "created", [Memory.from_row(row) for row in saved if row["inserted"]]
    )
    await history.add(
        connection, ACTOR, "reinforced", [Memory.from_row(row) for row in saved if not row["inserted"]]
    )
    await history.add(connection, ACTOR, "archived", [archived], f"enriched into {', '.join(ids)}")
    return [archived, *(Memory.from_row(row) for row in saved if row["inserted"])]


def _row(raw: Memory, draft: MemoryDraft) -> dict[str, Any]:
    return new_rows.row_from_draft(
        draft,
        sources=[source.model_dump() for source in raw.sources],
        derived_from=[raw.id],
        reinforcement_count=raw.reinforcement_count,
        created_at=raw.created_at,
        last_seen_at=raw.last_seen_at,
    )
