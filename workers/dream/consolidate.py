"""Pass `consolidate`: the model proposes what to merge and archive; a judge or signs decide about each merge.

Memories that were reviewed before and have not changed since are not shown to the model again. A scope
without changes therefore costs no call, and the cost of a large scope depends on how much has changed in
it. Memories for which a run has no time or budget left count as not reviewed, and the scope becomes due
again.

A batch without a usable reply is set aside, and the others are reviewed all the same. The next run asks
about its memories in batches of half the size, apart from the rest of the scope. A memory about which alone
there was no usable reply is not shown again until it changes: it must not cost a call in every run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.conversation.feedback import report as feedback_report
from shared.conversation.feedback.feedback_signal import FeedbackSignal
from shared.dreams.runs import progress_queries
from shared.dreams.runs.outcome import ArchiveRequest, Outcome, PassSkipped
from shared.dreams.verification import plan as dream_plan
from shared.dreams.verification.check import CheckedPlan, Snapshot, check
from shared.dreams.verification.plan import Plan
from shared.dreams.verification.rejection import item_reference
from shared.foundation import prompt_size
from shared.foundation.prompt_safety import single_line
from shared.memory.longterm import scope_queries
from shared.memory.longterm.memory import Memory
from workers.dream import memory_batches
from workers.dream.decided_merges import add_merge, merged_statement
from workers.passes import parts
from workers.passes.pass_context import PassContext

DIRECTIVE = "dream"
_SMALLEST_BATCH = 1


@dataclass(frozen=True, slots=True)
class _Inputs:
    memories: list[Memory]
    changed_ids: set[str]
    # The size of the batch in which a memory got no usable reply, by memory id.
    refused: dict[str, int]
    signals: list[FeedbackSignal]

    @property
    def open_memories(self) -> list[Memory]:
        """The memories that may be shown with any others."""
        return [memory for memory in self.memories if memory.id not in self.refused]


async def run(context: PassContext) -> Outcome:
    """Decide which memories to merge and which to archive."""
    inputs = await _load_inputs(context)
    if len(inputs.memories) < 2:
        raise PassSkipped("there are fewer than two memories")
    if not inputs.changed_ids:
        raise PassSkipped("nothing has changed since the last consolidation")
    consolidation = _Consolidation(context, inputs, await context.free_tokens(DIRECTIVE))
    batches = await consolidation.load_batches()
    answers = await parts.ask_in_parts(context, batches, consolidation.consolidate, consolidation.versions_of)
    context.refused_batch_sizes = {id_: len(batch) for batch, _ in answers.refused for id_ in batch}
    answers.require_usable()
    outcome = consolidation.outcome
    outcome.rejections += answers.rejections(lambda batch: item_reference("batch", batch))
    outcome.reviewed = consolidation.versions_of(answers.items)
    outcome.refused_batch_sizes = context.refused_batch_sizes
    outcome.has_more = answers.has_more
    outcome.inputs = dict(outcome.reviewed)
    outcome.shown_memories = {memory_id for batch in batches for memory_id in batch}
    outcome.shown_sessions = {signal.session_id for signal in inputs.signals}
    outcome.shown_signals = inputs.signals
    return outcome


async def _load_inputs(context: PassContext) -> _Inputs:
    settings, scope = context.resources.settings, context.run.scope
    async with context.resources.postgres.for_tenant(context.run.tenant) as tx:
        memories = await scope_queries.list_mergeable(tx, scope)
        reviewed = await progress_queries.list_reviewed(tx, scope, [memory.id for memory in memories])
        refused = await progress_queries.list_refused(tx, memories)
        signals = await feedback_report.recent(
            tx, scope, days=settings.dream_signal_days, limit=settings.dream_max_signals
        )
    set_aside = {memory_id for memory_id, size in refused.items() if size <= _SMALLEST_BATCH}
    changed_ids = {memory.id for memory in memories if reviewed.get(memory.id) != memory.version}
    return _Inputs(memories, changed_ids - set_aside, refused, signals)


class _Consolidation:
    """Asks about one batch of memories after the other and collects what is accepted."""

    def __init__(self, context: PassContext, inputs: _Inputs, free_tokens: int) -> None:
        self.outcome = Outcome(proposed=[])
        self._context = context
        self._inputs = inputs
        self._by_id = {memory.id: memory for memory in inputs.memories}
        signal_lines = prompt_size.fitting(map(_signal_line, inputs.signals), free_tokens // 4)
        self._signal_lines = ["Recent feedback:", *signal_lines, ""] if signal_lines else []
        # The other half is room for the feedback.
        self._max_tokens = free_tokens // 2
        self._pruned_count = 0

    async def load_batches(self) -> list[list[str]]:
        """Return the batches to ask about: first those of what never was refused."""
        tokens = {memory.id: _tokens_of(memory) for memory in self._inputs.memories}
        changed_ids = self._inputs.changed_ids - self._inputs.refused.keys()
        batches = await memory_batches.load_batches(
            self._context, self._inputs.open_memories, changed_ids, tokens, self._max_tokens
        )
        return [*batches, *_halves_of_refused(self._inputs)]

    def versions_of(self, memory_ids: Sequence[str]) -> dict[str, Any]:
        """Return memories as inputs of the pass."""
        return {memory_id: self._by_id[memory_id].version for memory_id in memory_ids}

    async def consolidate(self, batch: Sequence[str]) -> CheckedPlan:
        """Ask the model about one batch of memories and add the accepted items to the outcome."""
        offered_memories = {memory_id: self._by_id[memory_id] for memory_id in batch}
        prompt_text = "\n".join([*self._signal_lines, *_memory_lines(list(offered_memories.values()))])
        scope, scope_size = self._context.run.scope, len(self._by_id)
        snapshot = Snapshot(scope, offered_memories, scope_size, self._pruned_count)
        plan = dream_plan.parse((await self._context.ask(DIRECTIVE, prompt_text)).text)
        checked_plan = check(plan, snapshot)
        ids = [merge.source_ids for merge in checked_plan.merges]
        sources_of = [[self._by_id[source_id] for source_id in source_ids] for source_ids in ids]
        statements = [merged_statement(*pair) for pair in zip(checked_plan.merges, sources_of, strict=True)]
        decisions = await self._context.decide(statements)
        for merge, sources, decision in zip(checked_plan.merges, sources_of, decisions, strict=True):
            add_merge(self.outcome, merge, sources, decision)
        self._add_the_rest(plan, checked_plan)
        self._pruned_count += len(checked_plan.prunes)
        return checked_plan

    def _add_the_rest(self, plan: Plan, checked_plan: CheckedPlan) -> None:
        self.outcome.removals += [
            ArchiveRequest(self._by_id[prune.id], prune.reason) for prune in checked_plan.prunes
        ]
        self.outcome.rejections += [rejection.to_json() for rejection in checked_plan.rejections]
        self.outcome.proposed.append(dream_plan.as_json(plan))


def _halves_of_refused(inputs: _Inputs) -> list[list[str]]:
    """Return what got no usable reply before, in batches of half the size."""
    batches: list[list[str]] = []
    for size in sorted({size for size in inputs.refused.values() if size > _SMALLEST_BATCH}):
        ids = [memory_id for memory_id, refused_size in inputs.refused.items() if refused_size == size]
        ids = sorted(memory_id for memory_id in ids if memory_id in inputs.changed_ids)
        half = size // 2
        batches += [ids[start : start + half] for start in range(0, len(ids), half)]
    return batches


def _memory_lines(memories: Sequence[Memory]) -> list[str]:
    """Return the numbered memories.

    Each text is put on a single line, so that the text of a memory can't look like another memory.
    """
    lines: list[str] = []
    for number, memory in enumerate(memories, start=1):
        lines.append(f"{number}. [ID:{memory.id}] {_labels(memory)}")
        lines.append(f"   {single_line(memory.content)}")
    return lines


def _tokens_of(memory: Memory) -> int:
    return sum(map(prompt_size.tokens_of, _memory_lines([memory])))


def _signal_line(signal: FeedbackSignal) -> str:
    detail = f' ("{single_line(signal.detail)}")' if signal.detail else ""
    return f"- [{signal.type}] session {signal.session_id}: {single_line(signal.summary)}{detail}"


def _labels(memory: Memory) -> str:
    tags = ", ".join(memory.tags)
    occurred = f" about={memory.occurred_at:%Y-%m-%d}" if memory.occurred_at else ""
    return f"category={memory.category or 'none'} tags=[{tags}] saved={memory.created_at:%Y-%m-%d}{occurred}"
