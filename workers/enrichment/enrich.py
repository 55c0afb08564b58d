"""Enrich raw memories with a language model, and compact final ones that are too long in the same way.

The model is called without an open transaction. Its reply is stored only if the lease of the job still
holds and the memory has not changed meanwhile.
"""

from collections.abc import Sequence
from typing import Any

import structlog

from shared.foundation import config, errors
from shared.foundation.origin import Origin
from shared.foundation.stages import ENRICH, MemoryState
from shared.infra.postgres import transaction_time
from shared.infra.transaction import Transaction
from shared.jobs import counters as fleet_counters
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.memory.longterm import history, new_rows, reinforce, save, tombstones
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm.fingerprint import fingerprint_of
from shared.memory.longterm.memory import Archiver, Memory
from shared.memory.longterm.reinforce import Addition
from shared.memory.proposals import hold
from shared.memory.proposals.proposal import ProposalDraft, ProposalKind
from shared.platform.directives import resolve
from shared.platform.resources import Resources
from shared.verification.decision import Fate
from workers.enrichment import compaction, prompt, retelling
from workers.enrichment.compaction import NotCompacted
from workers.enrichment.retelling import DecidedDraft, Retelling
from workers.enrichment.rewrite import NoteRewriter
from workers.runtime import drain as job_drain
from workers.runtime.concurrent_drain import ConcurrentDrain, ReleaseSlot
from workers.runtime.drain import ClaimCounts

ACTOR = "enrichment"
log = structlog.get_logger()


async def enrich_pending(resources: Resources) -> ClaimCounts:
    """Enrich the memories that are due, with at most `llm_concurrency` calls at once in this process."""
    return await _concurrent_drain.drain(resources, resources.settings.llm_concurrency)


async def enrich(resources: Resources, job: Job, release_slot: ReleaseSlot) -> None:
    """Enrich the memory of a claimed job, and call `release_slot` once the model has replied."""
    model = resources.language_model
    async with resources.postgres.for_tenant(job.tenant) as tx:
        raw_memory = next(iter(await memory_queries.read(tx, [job.record_id])), None)
        directive = await resolve.resolve(tx, resources.settings, "memory-rules")
    if raw_memory is None or not _is_due(resources, raw_memory):
        await _complete(resources, job)
        return
    if model is None:
        await keep_as_written(resources, job, MemoryState.FINAL, None)
        return
    rewriter = NoteRewriter(resources, model, raw_memory, prompt.system_prompt(directive.text))
    try:
        retelling = await _retell(rewriter)
    except errors.OverBudget as error:
        await _keep_or_wait(resources, job, raw_memory, error)
    except NotCompacted as error:
        await keep_as_written(resources, job, MemoryState.KEPT_RAW, str(error))
    except errors.Unavailable as error:
        await job_drain.retry_later(resources, ENRICH, job, error, _fail)
    except errors.PromptTooLong as error:
        await keep_as_written(resources, job, MemoryState.FAILED, f"too long for the model: {error}")
    except errors.CutOffReply:
        await keep_as_written(resources, job, MemoryState.FAILED, "answer cut off")
    except errors.InvalidModelReply as error:
        await keep_as_written(resources, job, MemoryState.FAILED, str(error))
    else:
        release_slot()
        await _store(resources, job, raw_memory, retelling)


def _is_due(resources: Resources, memory: Memory) -> bool:
    """Tell whether a memory is to be rewritten: a raw one, or a final one that is too long."""
    if memory.state is MemoryState.PENDING:
        return True
    has_model = resources.language_model is not None
    return has_model and compaction.is_oversized(memory, resources.settings.llm_compact_from)


async def _retell(rewriter: NoteRewriter) -> Retelling:
    """Rewrite a note and decide about each part. A final memory is rewritten whole or not at all."""
    note, drafts = rewriter.raw_memory, await rewriter.rewrite()
    if note.state is MemoryState.PENDING:
        return await retelling.decide(rewriter.resources, note, drafts)
    drafts = compaction.compacted(note, drafts, rewriter.resources.settings.llm_compact_from)
    compacted = await retelling.decide(rewriter.resources, note, drafts)
    if len(compacted.with_fate(Fate.STORED)) < len(drafts):
        raise NotCompacted("too long, and its rewriting is in doubt")
    return compacted


_concurrent_drain = ConcurrentDrain(ENRICH, enrich)


async def _keep_or_wait(resources: Resources, job: Job, memory: Memory, error: errors.OverBudget) -> None:
    """Keep a raw memory as it is. A final one can wait for the next window of the budget."""
    if memory.state is MemoryState.PENDING:
        await keep_as_written(resources, job, MemoryState.KEPT_RAW, str(error))
        return
    await job_drain.wait_for_budget(resources, job, error)


async def _fail(resources: Resources, job: Job, reason: str) -> None:
    await keep_as_written(resources, job, MemoryState.FAILED, reason)


async def _complete(resources: Resources, job: Job) -> None:
    async with resources.postgres.across_tenants() as tx:
        await job_queries.complete(tx, [job])


async def keep_as_written(resources: Resources, job: Job, state: MemoryState, reason: str | None) -> None:
    """Complete the job and leave its memory as it was written, in `state` and with the reason for it.

    One that was final stays final. Do nothing if the lease of the job was lost, or the memory archived.
    """
    async with resources.postgres.for_tenant(job.tenant) as tx:
        locked_memories = await memory_queries.lock(tx, [job.record_id])
        if job.id not in await job_queries.complete(tx, [job]):
            return
        before = next(iter(locked_memories), None)
        if before is None or before.archived_at is not None:
            return
        state = MemoryState.FINAL if before.state is MemoryState.FINAL else state
        columns = {"state": state, "failure_reason": reason}
        memory = await memory_queries.update_columns(tx, job.record_id, columns)
        await history.add(tx, ACTOR, state, [memory], reason)
        await fleet_counters.increment(tx, "enrichments", {state: 1})


async def _store(resources: Resources, job: Job, read_memory: Memory, retelling: Retelling) -> None:
    """Replace the memory as it was read by its retelling in one transaction, or keep it."""
    async with resources.transaction(job.tenant) as tx:
        # The memory is locked before its job, as updating and deleting a memory do: in another order
        # the two transactions could wait for each other.
        locked_memories = await memory_queries.lock(tx, [job.record_id])
        if job.id not in await job_queries.complete(tx, [job]):
            return  # the memory was updated or deleted meanwhile, or another worker has the job now
        raw_memory = next(iter(locked_memories), None)
        if raw_memory is None or raw_memory.state is not read_memory.state:
            return
        if raw_memory.version != read_memory.version and raw_memory.state is MemoryState.FINAL:
            return  # no update of a final memory resets the job; if it is still too long, the sweep finds it
        stored = await _without_deleted(tx, raw_memory, retelling.with_fate(Fate.STORED))
        has_deleted = len(stored) < len(retelling.with_fate(Fate.STORED))
        changed_memories = await _replace(tx, raw_memory, stored, has_deleted=has_deleted) if stored else []
        if not stored:
            await _keep(tx, raw_memory, retelling.reason_against)
        await _hold(tx, resources.settings, raw_memory, retelling.with_fate(Fate.HELD))
        outcome = "enriched" if stored else MemoryState.KEPT_RAW
        await fleet_counters.increment(tx, "enrichments", {outcome: 1})
        await save.index(tx, changed_memories)


async def _hold(
    tx: Transaction, settings: config.Settings, raw_memory: Memory, drafts: Sequence[DecidedDraft]
) -> None:
    """Let what is in doubt wait: the note stays as its evidence, also once others have replaced it."""
    proposals = [
        ProposalDraft(
            ProposalKind.REWRITING,
            _successor_row(raw_memory, item),
            evidence_memory_ids=(raw_memory.id,),
            replaces=(raw_memory.id,),
            signs=item.decision.signs,
        )
        for item in drafts
    ]
    await hold.hold(tx, settings, raw_memory.scope, proposals)


async def _keep(tx: Transaction, memory: Memory, reason: str | None) -> None:
    """Keep a memory of which nothing may be stored."""
    is_final = memory.state is MemoryState.FINAL
    if is_final:
        reason = "too long, but a part of it was deleted before"
    state = MemoryState.FINAL if is_final else MemoryState.KEPT_RAW
    columns = {"state": state, "failure_reason": reason}
    kept = await memory_queries.update_columns(tx, memory.id, columns)
    await history.add(tx, ACTOR, state, [kept], reason)


async def _without_deleted(
    tx: Transaction, raw_memory: Memory, drafts: Sequence[DecidedDraft]
) -> list[DecidedDraft]:
    """Return the drafts without those that a caller has deleted: a model must not bring them back.

    A final memory was saved as it is: if it would lose a part, there are none.
    """
    if not drafts:
        return []
    deleted_texts = await tombstones.find_deleted(
        tx, raw_memory.scope, [item.draft.content for item in drafts]
    )
    if deleted_texts and raw_memory.state is MemoryState.FINAL:
        return []
    return [item for item in drafts if item.draft.content not in deleted_texts]


async def _replace(
    tx: Transaction, raw_memory: Memory, drafts: Sequence[DecidedDraft], *, has_deleted: bool
) -> list[Memory]:
    """Archive the raw memory, save its successors, and return all memories that are to be indexed again.

    The raw memory is archived first, because a successor may have the same content. If it has what a caller
    has deleted before (`has_deleted`), it is closed as well: it is no evidence, and nobody finds that by it.
    """
    what = "compacted" if raw_memory.state is MemoryState.FINAL else "enriched"
    await memory_queries.archive(tx, [raw_memory.id], Archiver.ENRICHMENT, what)
    successors = {fingerprint_of(item.draft): _successor_row(raw_memory, item) for item in drafts}
    rows = await memory_queries.upsert(tx, raw_memory.scope, list(successors.values()))
    ids = [row["id"] for row in rows]
    new_memories = [Memory.from_row(row) for row in rows if row["inserted"]]
    present = [(Memory.from_row(row), bytes(row["fingerprint"])) for row in rows if not row["inserted"]]
    reinforced = [
        await reinforce.widen(tx, memory, Addition.from_row(successors[fingerprint_]))
        for memory, fingerprint_ in present
    ]
    lineage: dict[str, Any] = {"superseded_by": ids}
    if has_deleted:
        lineage["valid_until"] = await transaction_time(tx)
    archived_memory = await memory_queries.update_columns(tx, raw_memory.id, lineage)
    await history.add(tx, ACTOR, "created", new_memories)
    await history.add(tx, ACTOR, "reinforced", reinforced)
    await history.add(tx, ACTOR, "archived", [archived_memory], f"{what} into {', '.join(ids)}")
    return [archived_memory, *new_memories, *reinforced]


def _successor_row(raw_memory: Memory, decided: DecidedDraft) -> dict[str, Any]:
    return new_rows.row_from_draft(
        decided.draft.model_copy(update=new_rows.lifetime_columns(raw_memory)),
        Origin.derived([raw_memory.origin.trust]),
        sources=[source.model_dump() for source in raw_memory.sources],
        saved_without_source=raw_memory.has_other_origin,
        derived_from=[raw_memory.id],
        reinforcement_count=raw_memory.reinforcement_count,
        created_at=raw_memory.created_at,
        last_seen_at=raw_memory.last_seen_at,
        **decided.decision.columns,
    )
