"""Decide about a proposal: store the memory that it would become, or refuse it. Callers and judges end here.

What a proposal was made from may have changed while it waited. The sessions and memories that it names are
locked first, in the order of all transactions, and then compared with what they were: nothing is stored
that rests on what was deleted, edited or archived since.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from shared.conversation.sessions import queries as session_queries
from shared.foundation import errors
from shared.foundation.origin import Origin
from shared.foundation.stages import Pipeline, RecordKind
from shared.infra.postgres import transaction_time
from shared.infra.transaction import Transaction
from shared.jobs import queries as job_queries
from shared.lifecycle import closed_facts
from shared.memory.longterm import history, new_rows, reinforce, save, tombstones
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm.memory import Archiver, DecidedBy, Memory
from shared.memory.longterm.reinforce import Addition
from shared.memory.proposals import queries
from shared.memory.proposals.proposal import Proposal, ProposalKind, ProposalState
from shared.records.transaction import RecordTransaction
from shared.verification.claim import Verdict

_ARCHIVERS = {ProposalKind.REWRITING: Archiver.ENRICHMENT, ProposalKind.MERGE: Archiver.DREAM}
_SOURCE_COLUMNS = ("sources", "saved_without_source", "derived_from", "reinforcement_count")
_TIME_COLUMNS = ("created_at", "last_seen_at")


@dataclass(frozen=True, slots=True)
class Decision:
    """What somebody decides about a proposal.

    `actor` is the id of a key, or the name of a worker. `edited` replaces the text. Without `closes` the
    memory that the proposal would end stays as it is.
    """

    is_approved: bool
    actor: str
    decided_by: DecidedBy
    reason: str | None = None
    edited: str | None = None
    closes: bool = True
    verdict: Verdict | None = None
    judge_model: str | None = None


async def lock(tx: Transaction, proposal_id: str) -> Proposal | None:
    """Lock a proposal that waits or was decided, with the sessions and memories that it names; None: no such.

    The caller has called `removals.delay_erasures` for its scope.
    """
    found = await queries.find(tx, proposal_id)
    if found is None:
        return None
    await session_queries.lock_existing(tx, sorted(found.session_ids))
    await memory_queries.lock(tx, sorted(found.edited_at))
    return await queries.find(tx, proposal_id, lock=True)


async def settle(tx: RecordTransaction, proposal: Proposal, decision: Decision) -> Proposal:
    """Approve or refuse a locked proposal, and return it.

    Raises errors.Conflict if it was decided before or has expired. Raises it for an approval, too, if some
    of its evidence, or of what it closes or replaces, was deleted, edited or archived since, or its text.
    """
    if proposal.state is not ProposalState.HELD:
        raise errors.Conflict(f"the proposal is {proposal.state} already")
    decided_by = decision.actor if decision.decided_by is DecidedBy.CALLER else decision.decided_by.value
    columns = {"reason": decision.reason, "decided_by": decided_by}
    if not decision.is_approved:
        return await queries.decide(tx, proposal.id, columns | {"state": ProposalState.REFUSED})
    memories = await _require_unchanged(tx, proposal, decision)
    stored = await _store(tx, proposal, decision, memories)
    approved = {"state": ProposalState.APPROVED, "memory_id": stored.id}
    return await queries.decide(tx, proposal.id, columns | approved)


async def _require_unchanged(tx: Transaction, proposal: Proposal, decision: Decision) -> Mapping[str, Memory]:
    """Return the locked memories that a proposal names, by id, as they are now."""
    if len(proposal.evidence) < proposal.evidence_count:
        raise errors.Conflict("some of the evidence of the proposal was deleted or edited since")
    memories = {memory.id: memory for memory in await memory_queries.read(tx, list(proposal.edited_at))}
    for memory_id, edited_at in sorted(proposal.edited_at.items()):
        if memory_id == proposal.closes and not decision.closes:
            continue
        memory = memories.get(memory_id)
        if memory is None or memory.updated_at != edited_at:
            raise errors.Conflict(f"memory '{memory_id}' was deleted or edited since it was proposed")
        if not _is_open(proposal, memory):
            raise errors.Conflict(f"memory '{memory_id}' was archived or closed since it was proposed")
    text = decision.edited or proposal.text
    if decision.edited is None and await tombstones.find_deleted(tx, proposal.scope, [text]):
        raise errors.Conflict("a memory of this text was deleted")
    return memories


def _is_open(proposal: Proposal, memory: Memory) -> bool:
    """Tell whether a memory is live and not closed, or the note that another statement of it has replaced."""
    is_rewritten = proposal.kind == ProposalKind.REWRITING and memory.archived_by is Archiver.ENRICHMENT
    is_live = memory.archived_at is None or (is_rewritten and memory.id in proposal.replaces)
    return is_live and memory.valid_until is None


async def _store(
    tx: RecordTransaction, proposal: Proposal, decision: Decision, memories: Mapping[str, Memory]
) -> Memory:
    closed = memories.get(proposal.closes or "") if decision.closes else None
    at = await _closing_time(tx, proposal, closed)
    replaced = [memories[memory_id] for memory_id in proposal.replaces]
    # They are archived first: the new text may equal the text of one of them.
    archived = await _archive(tx, proposal, decision, replaced)
    stored = await _insert(tx, proposal, decision, at)
    changed = [stored]
    for before, after in zip(replaced, archived, strict=True):
        successors = list(dict.fromkeys([*before.superseded_by, stored.id]))
        superseded = await memory_queries.update_columns(tx, after.id, {"superseded_by": successors})
        await history.add_change(tx, decision.actor, "archived", before, superseded, decision.reason)
        changed.append(superseded)
    if closed is not None and at is not None and closed.id != stored.id:
        ended = await memory_queries.close(tx, closed, at, stored.id)
        await history.add_change(tx, decision.actor, "closed", closed, ended, decision.reason)
        await closed_facts.invalidate(tx, proposal.scope, [ended.id])
        changed.append(ended)
    await save.index(tx, changed)
    return stored


async def _closing_time(tx: Transaction, proposal: Proposal, closed: Memory | None) -> datetime | None:
    """Return when a memory ends: when what replaces it begins, and not before it began itself."""
    if closed is None:
        return None
    draft = proposal.draft(None)
    at = draft.valid_from or draft.occurred_at or await transaction_time(tx)
    return at if closed.valid_from is None else max(at, closed.valid_from)


async def _archive(
    tx: Transaction, proposal: Proposal, decision: Decision, replaced: list[Memory]
) -> list[Memory]:
    archiver = _ARCHIVERS.get(ProposalKind(proposal.kind), Archiver.CALLER)
    ids = [memory.id for memory in replaced]
    reason = decision.reason or f"replaced by a {proposal.kind}"
    archived = {memory.id: memory for memory in await memory_queries.archive(tx, ids, archiver, reason)}
    await job_queries.cancel(tx, RecordKind.MEMORY, ids, Pipeline.ENRICHMENT)
    return [archived.get(memory.id, memory) for memory in replaced]


async def _insert(tx: Transaction, proposal: Proposal, decision: Decision, at: datetime | None) -> Memory:
    """Insert the memory, or reinforce the live one that says the same."""
    draft = proposal.draft(decision.edited)
    kept = (*_SOURCE_COLUMNS, *_TIME_COLUMNS)
    columns = {name: proposal.row[name] for name in kept if proposal.row.get(name) is not None}
    columns |= {"decided_by": decision.decided_by, "verdict": decision.verdict}
    columns |= {"judge_model": decision.judge_model}
    if at is not None:
        columns["valid_from"] = at
    new_row = new_rows.row_from_draft(draft, Origin.from_row(proposal.row), **columns)
    (row,) = await memory_queries.upsert(tx, proposal.scope, [new_row])
    memory = Memory.from_row(row)
    if row["inserted"]:
        await history.add(tx, decision.actor, "created", [memory], decision.reason)
        return memory
    widened = await reinforce.widen(tx, memory, Addition.from_row(new_row))
    await history.add(tx, decision.actor, "reinforced", [widened], decision.reason)
    return widened
