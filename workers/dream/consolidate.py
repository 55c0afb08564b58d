"""Consolidation: the model proposes, `check` decides, and what is left is done in one transaction.

Entries that were looked at before and have not changed are not asked about again: a scope with
nothing new costs no call, and a large one costs as much as changed in it. What a night has no time
or money for stays changed, and the scope is due again.
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
class _Read:
    entries: list[Memory]
    changed: set[str]
    signals: list[FeedbackSignal]


async def run(context: PassContext) -> Outcome:
    """Decide what to merge and what to archive."""
    read = await _read(context)
    if len(read.entries) < 2:
        raise PassSkipped("fewer than two entries")
    if not read.changed:
        raise PassSkipped("nothing has changed since the last consolidation")
    outcome = Outcome(proposed=[])
    versions = {entry.id: entry.version for entry in read.entries}
    pruned, groups = 0, await memory_batches.load_batches(context, read.entries, read.changed)
    for group in groups:
        try:
            checked = await _consolidate(context, read, group, pruned, outcome)
        except PassSkipped:  # over budget: what was asked before is done all the same
            if not outcome.proposed:
                raise
            break
        pruned += len(checked.prunes)
        outcome.reviewed |= {record_id: versions[record_id] for record_id in group}
        if not context.has_time():
            break
    outcome.has_more = len(outcome.reviewed) < sum(map(len, groups))
    outcome.inputs = dict(outcome.reviewed)
    return outcome


async def _read(night: PassContext) -> _Read:
    settings, scope = night.resources.settings, night.run.scope
    async with night.resources.postgres.for_tenant(night.run.tenant) as connection:
        entries = await scope_queries.list_scope(connection, scope)
        seen = await progress_queries.list_reviewed(connection, scope, [entry.id for entry in entries])
        signals = await feedback_report.recent(
            connection, scope, days=settings.dream_signal_days, limit=settings.dream_max_signals
        )
    changed = {entry.id for entry in entries if seen.get(entry.id) != entry.version}
    return _Read(entries, changed, signals)


async def _consolidate(
    night: PassContext, read: _Read, group: Sequence[str], pruned: int, outcome: Outcome
) -> CheckedPlan:
    """Ask about one group of entries and add what may be done to the outcome."""
    known = {entry.id: entry for entry in read.entries}
    offered = {record_id: known[record_id] for record_id in group}
    told = _told(read.signals, list(offered.values()))
    snapshot = Snapshot(night.run.scope, offered, len(read.entries), pruned)
    plan = dream_plan.parse((await night.ask(DIRECTIVE, told)).text)
    checked = check(plan, snapshot)
    _add(outcome, plan, checked, known)
    mendable = [one for one in checked.rejections if one.code in REPAIRABLE]
    if mendable:
        await _repair(night, told, mendable, checked, snapshot, outcome)
    return checked


async def _repair(
    night: PassContext,
    told: str,
    mendable: Sequence[Rejection],
    checked: CheckedPlan,
    snapshot: Snapshot,
    outcome: Outcome,
) -> None:
    """Let the model mend what lost something, once; ids that are merged already are no longer offered."""
    again = await night.ask(DIRECTIVE, f"{told}\n\n{_asked_again(mendable)}")
    mended = Plan((), dream_plan.parse(again.text).replacements)
    left = snapshot.left_after(checked)
    _add(outcome, mended, check(mended, left), dict(left.entries))


def _add(outcome: Outcome, plan: Plan, checked: CheckedPlan, known: dict[str, Memory]) -> None:
    for merge in checked.merges:
        sources = tuple(known[record_id] for record_id in merge.source_ids)
        outcome.creations.append(NewMemory(row_from_merge(merge.fields), sources))
    outcome.removals += [ArchiveRequest(known[prune.id], prune.reason) for prune in checked.prunes]
    outcome.rejections += [
        {"code": one.code, "detail": one.detail, "words": list(one.words), **one.item}
        for one in checked.rejections
    ]
    outcome.proposed.append(dream_plan.as_json(plan))


def _told(signals: Sequence[FeedbackSignal], entries: Sequence[Memory]) -> str:
    """Return the feedback and the numbered entries: one line each, so that no entry can forge another."""
    lines = [f"- [{s.type}] session {s.session_id}: {single_line(s.summary)}{_quoted(s)}" for s in signals]
    shown = ["Recent feedback:", *lines, ""] if lines else []
    for place, entry in enumerate(entries, start=1):
        tags = ", ".join(entry.tags)
        dated = f" about={entry.occurred_at:%Y-%m-%d}" if entry.occurred_at else ""
        label = f"category={entry.category or 'none'} tags=[{tags}] saved={entry.created_at:%Y-%m-%d}{dated}"
        shown.append(f"{place}. [ID:{entry.id}] {label}")
        shown.append(f"   {single_line(entry.content)}")
    return "\n".join(shown)


def _quoted(signal: FeedbackSignal) -> str:
    return f' ("{single_line(signal.detail)}")' if signal.detail else ""


def _asked_again(mendable: Sequence[Rejection]) -> str:
    lines = [
        f"- sources {', '.join(one.item['ids'])}: {one.detail}: {', '.join(one.words)}" for one in mendable
    ]
    return "\n".join(
        [
            "These replacements were refused. Mend what is said of each and write it anew, or leave it out:",
            *lines,
        ]
    )
