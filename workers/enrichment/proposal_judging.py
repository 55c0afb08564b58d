"""Ask the trusted judge about proposals that wait, and settle what it decides.

They were held while no judge was trusted, or by another model. What it gives no clear verdict on goes on
waiting for a caller, and this judge is not asked about it again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shared.conversation.turns import log_queries
from shared.conversation.turns.turn import Turn
from shared.dreams.passes.fact_statements import TURNS_BEFORE, evidence_of
from shared.foundation import errors
from shared.foundation.roles import Role
from shared.foundation.scope import Scope
from shared.foundation.stages import JUDGE_PROPOSALS_TASK
from shared.infra.transaction import Transaction
from shared.jobs import removals
from shared.lifecycle import settle_proposal
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm.as_evidence import NOTE, evidence_of_memory
from shared.memory.longterm.memory import DecidedBy
from shared.memory.proposals import queries
from shared.memory.proposals.proposal import MemoryEvidence, Proposal, TurnEvidence
from shared.platform.auth import queries as auth_queries
from shared.platform.resources import Resources
from shared.platform.spend.charge import Payer, Purpose
from shared.verification.claim import Claim, Judgement, Verdict
from shared.verification.trusted_judge import TrustedJudge, find_trusted_judge

ACTOR = "enrichment"
MAX_AT_ONCE = 10
"""Proposals of one call: each may make two claims."""
_MAX_TURNS = 40
_MAX_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class _Question:
    """A proposal, and whether it is so and what it closes has ended, as claims."""

    proposal: Proposal
    claims: Sequence[Claim]


async def judge_waiting(resources: Resources) -> int:
    """Ask about some proposals of each tenant, and return how many were settled; go on while some are."""
    judge = await find_trusted_judge(resources)
    if judge is None:
        return 0
    async with resources.postgres.across_tenants() as tx:
        tenants = await auth_queries.list_tenants(tx)
    settled = sum([await _judge_tenant(resources, judge, tenant) for tenant in tenants])
    if settled:
        resources.publisher.send(JUDGE_PROPOSALS_TASK)
    return settled


async def _judge_tenant(resources: Resources, judge: TrustedJudge, tenant: str) -> int:
    by_scope: dict[Scope, list[_Question]] = {}
    async with resources.postgres.for_tenant(tenant) as tx:
        for proposal in await queries.list_due(tx, judge.name, MAX_AT_ONCE):
            question = _Question(proposal, await _claims(tx, proposal))
            by_scope.setdefault(proposal.scope, []).append(question)
    return sum([await _ask(resources, judge, *item) for item in by_scope.items()])


async def _ask(
    resources: Resources, judge: TrustedJudge, scope: Scope, questions: Sequence[_Question]
) -> int:
    """Ask about proposals of one scope, at its expense, and return how many were settled."""
    payer = Payer(scope.tenant, scope.agent_id, scope.user_id, Purpose.JUDGE)
    claims = [claim for question in questions for claim in question.claims]
    try:
        judged = iter(await judge.ask(payer, claims))
    except (errors.OverBudget, errors.Unavailable):
        return 0  # asked again by the next sweep
    settled = 0
    for question in questions:
        judgements = [next(judged) for _ in question.claims]
        settled += await _settle(resources, judge, question.proposal, judgements)
    return settled


async def _claims(tx: Transaction, proposal: Proposal) -> list[Claim]:
    turn_items = [item for item in proposal.evidence if isinstance(item, TurnEvidence)]
    turns = await _read_turns(tx, turn_items)
    turn_keys = {(item.session_id, item.seq) for item in turn_items}
    sources = [evidence_of(turn).text for turn in turns if (turn.session_id, turn.seq) in turn_keys]
    memory_ids = [item.memory_id for item in proposal.evidence if isinstance(item, MemoryEvidence)]
    rows = await memory_queries.read(tx, [*memory_ids, *_closed(proposal)])
    memories = {memory.id: memory for memory in rows}
    existing = [memories[id_] for id_ in memory_ids if id_ in memories]
    notes = [evidence_of_memory(memory, NOTE, _MAX_CHARACTERS) for memory in existing]
    evidence = (*map(evidence_of, turns), *notes)
    quotable = (*sources, *(note.text for note in notes))
    closed = [memories[id_].content for id_ in _closed(proposal) if id_ in memories]
    return [Claim(proposal.text, evidence, text, quotable) for text in (None, *closed)]


def _closed(proposal: Proposal) -> list[str]:
    return [proposal.closes] if proposal.closes else []


async def _read_turns(tx: Transaction, items: Sequence[TurnEvidence]) -> list[Turn]:
    """Return the turns of the evidence with some before them, which explain them."""
    ends = {item.session_id: item.seq + 1 for item in sorted(items, key=lambda item: item.seq)}
    first_seqs = {item.session_id: item.seq for item in sorted(items, key=lambda item: -item.seq)}
    count = max((ends[id_] - first_seqs[id_] for id_ in ends), default=0) + TURNS_BEFORE
    turns = await log_queries.list_before(tx, ends, min(count, _MAX_TURNS)) if ends else []
    return [turn for turn in turns if turn.role in (Role.USER, Role.ASSISTANT)]


async def _settle(
    resources: Resources, judge: TrustedJudge, proposal: Proposal, judgements: Sequence[Judgement | None]
) -> bool:
    """Settle a proposal by its verdicts, unless somebody has, or its evidence has changed."""
    decision = _decision(judge, judgements)
    if decision is not None:
        if await _try_to_settle(resources, proposal, decision):
            return True
        # What it would end may have ended otherwise: then the statement is stored alone.
        ends_some = bool(proposal.closes) and decision.closes
        if ends_some and await _try_to_settle(resources, proposal, replace(decision, closes=False)):
            return True
    async with resources.postgres.for_tenant(proposal.tenant) as tx:
        await queries.note_asked(tx, [proposal.id], judge.name)
    return False


async def _try_to_settle(
    resources: Resources, proposal: Proposal, decision: settle_proposal.Decision
) -> bool:
    try:
        async with resources.transaction(proposal.tenant) as tx:
            await removals.delay_erasures(tx, proposal.scope)
            locked = await settle_proposal.lock(tx, proposal.id)
            if locked is not None:
                await settle_proposal.settle(tx, locked, decision)
    except errors.Conflict:
        return False
    return True


def _decision(judge: TrustedJudge, judgements: Sequence[Judgement | None]) -> settle_proposal.Decision | None:
    """Return what the verdicts decide, or None if one of them is not clear."""
    statement, *closings = judgements
    if statement is None or (statement.verdict is Verdict.SUPPORTED and None in closings):
        return None
    return settle_proposal.Decision(
        statement.verdict is Verdict.SUPPORTED,
        ACTOR,
        DecidedBy.JUDGE,
        closes=all(closing is not None and closing.verdict is Verdict.SUPPORTED for closing in closings),
        verdict=statement.verdict,
        judge_model=judge.model,
    )
