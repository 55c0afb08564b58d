"""Pass `consolidate`: the model proposes what to merge and archive, and `check` decides what is applied.

Memories that were reviewed before and have not changed since are not shown to the model again. A scope
without changes therefore costs no call, and the cost of a large scope depends on how much has changed in
it. Memories for which a run has no time or budget left count as not reviewed, and the scope becomes due
again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.conversation.feedback import report as feedback_report
from shared.conversation.feedback.feedback_signal import FeedbackSignal
from shared.dreams.runs import progress_queries
from shared.dreams.runs.outcome import ArchiveRequest, NewMemory, Outcome, PassSkipped
from shared.dreams.verification import plan as dream_plan
from shared.dreams.verification.check import CheckedPlan, Snapshot, check
from shared.dreams.verification.merge import row_from_merge
from shared.dreams.verification.plan import Plan
from shared.dreams.verification.rejection import REPAIRABLE, Rejection
from shared.foundation.prompt_safety import single_line
from shared.memory.longterm import scope_queries
from shared.memory.longterm.memory import Memory
from workers.dream import memory_batches
from workers.dream.pass_context import PassContext

DIRECTIVE = "dream"


@dataclass(frozen=True, slots=True)
class _Inputs:
    memories: list[Memory]
    changed_ids: set[str]
    signals: list[FeedbackSignal]


async def run(context: PassContext) -> Outcome:
    """Decide which memories to merge and which to archive."""
    inputs = await _load_inputs(context)
    if len(inputs.memories) < 2:
        raise PassSkipped("there are fewer than two memories")
    if not inputs.changed_ids:
        raise PassSkipped("nothing has changed since the last consolidation")
    outcome = Outcome(proposed=[])
    versions = {memory.id: memory.version for memory in inputs.memories}
    batches = await memory_batches.load_batches(context, inputs.memories, inputs.changed_ids)
    pruned_count = 0
    for batch in batches:
        try:
            checked_plan = await _consolidate(context, inputs, batch, pruned_count, outcome)
        except PassSkipped:  # over budget: the batches before this one are applied all the same
            if not outcome.proposed:
                raise
            break
        pruned_count += len(checked_plan.prunes)
        outcome.reviewed |= {memory_id: versions[memory_id] for memory_id in batch}
        if not context.has_time():
            break
    outcome.has_more = len(outcome.reviewed) < sum(map(len, batches))
    outcome.inputs = dict(outcome.reviewed)
    outcome.shown_memories = set(outcome.reviewed)
    outcome.shown_sessions = {signal.session_id for signal in inputs.signals}
    return outcome


async def _load_inputs(context: PassContext) -> _Inputs:
    settings, scope = context.resources.settings, context.run.scope
    async with context.resources.postgres.for_tenant(context.run.tenant) as connection:
        memories = await scope_queries.list_scope(connection, scope)
        reviewed = await progress_queries.list_reviewed(connection, scope, [memory.id for memory in memories])
        signals = await feedback_report.recent(
            connection, scope, days=settings.dream_signal_days, limit=settings.dream_max_signals
        )
    changed_ids = {memory.id for memory in memories if reviewed.get(memory.id) != memory.version}
    return _Inputs(memories, changed_ids, signals)


async def _consolidate(
    context: PassContext, inputs: _Inputs, batch: Sequence[str], pruned_count: int, outcome: Outcome
) -> CheckedPlan:
    """Ask the model about one batch of memories and add the accepted items to the outcome."""
    by_id = {memory.id: memory for memory in inputs.memories}
    offered_memories = {memory_id: by_id[memory_id] for memory_id in batch}
    prompt_text = _prompt_text(inputs.signals, list(offered_memories.values()))
    snapshot = Snapshot(context.run.scope, offered_memories, len(inputs.memories), pruned_count)
    plan = dream_plan.parse((await context.ask(DIRECTIVE, prompt_text)).text)
    checked_plan = check(plan, snapshot)
    _add_to_outcome(outcome, plan, checked_plan, by_id)
    repairable = [rejection for rejection in checked_plan.rejections if rejection.code in REPAIRABLE]
    if repairable:
        repair_prompt = f"{prompt_text}\n\n{_repair_text(repairable)}"
        await _repair(context, repair_prompt, snapshot.remaining_after(checked_plan), outcome)
    return checked_plan


async def _repair(context: PassContext, prompt_text: str, remaining: Snapshot, outcome: Outcome) -> None:
    """Let the model repair rejected replacements, once. Memories that were merged are no longer offered."""
    reply = await context.ask(DIRECTIVE, prompt_text)
    # Deletions of the second reply are ignored: it was only asked for replacements.
    plan = Plan((), dream_plan.parse(reply.text).replacements)
    _add_to_outcome(outcome, plan, check(plan, remaining), dict(remaining.memories))


def _add_to_outcome(
    outcome: Outcome, plan: Plan, checked_plan: CheckedPlan, by_id: dict[str, Memory]
) -> None:
    for merge in checked_plan.merges:
        sources = tuple(by_id[memory_id] for memory_id in merge.source_ids)
        outcome.creations.append(NewMemory(row_from_merge(merge.fields), sources))
    outcome.removals += [ArchiveRequest(by_id[prune.id], prune.reason) for prune in checked_plan.prunes]
    outcome.rejections += [
        {
            "code": rejection.code,
            "detail": rejection.detail,
            "words": list(rejection.words),
            **rejection.item,
        }
        for rejection in checked_plan.rejections
    ]
    outcome.proposed.append(dream_plan.as_json(plan))


def _prompt_text(signals: Sequence[FeedbackSignal], memories: Sequence[Memory]) -> str:
    """Return the feedback and the numbered memories.

    Each text is put on a single line, so that the text of a memory can't look like another memory.
    """
    lines = ["Recent feedback:", *map(_signal_line, signals), ""] if signals else []
    for number, memory in enumerate(memories, start=1):
        lines.append(f"{number}. [ID:{memory.id}] {_labels(memory)}")
        lines.append(f"   {single_line(memory.content)}")
    return "\n".join(lines)


def _signal_line(signal: FeedbackSignal) -> str:
    detail = f' ("{single_line(signal.detail)}")' if signal.detail else ""
    return f"- [{signal.type}] session {signal.session_id}: {single_line(signal.summary)}{detail}"


def _labels(memory: Memory) -> str:
    tags = ", ".join(memory.tags)
    occurred = f" about={memory.occurred_at:%Y-%m-%d}" if memory.occurred_at else ""
    return f"category={memory.category or 'none'} tags=[{tags}] saved={memory.created_at:%Y-%m-%d}{occurred}"


def _repair_text(repairable: Sequence[Rejection]) -> str:
    lines = [
        f"- sources {', '.join(rejection.item['ids'])}: {rejection.detail}: {', '.join(rejection.words)}"
        for rejection in repairable
    ]
    return "\n".join(
        [
            "These replacements were refused. Mend what is said of each and write it anew, or leave it out:",
            *lines,
        ]
    )
