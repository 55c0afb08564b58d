"""Let what a pass finds in doubt wait for a judge or a caller, in the transaction that applies the pass."""

from collections.abc import Sequence
from dataclasses import replace

from shared.dreams.runs import undone_change_queries
from shared.dreams.runs.applied_changes import AppliedChanges
from shared.dreams.runs.dream_run import Run
from shared.dreams.runs.outcome import Outcome
from shared.dreams.verification.rejection import RejectionCode
from shared.foundation.config import Settings
from shared.infra.transaction import Transaction
from shared.memory.proposals import hold
from shared.memory.proposals.proposal import ProposalDraft


async def hold_doubted(
    tx: Transaction, settings: Settings, run: Run, outcome: Outcome, applied_changes: AppliedChanges
) -> Outcome:
    """Hold what is in doubt, and return the outcome.

    If the scope has no room for all of it, the turns count as unread, and are mined again once there is room.
    """
    drafts = await _without_undone(tx, outcome.held, applied_changes)
    drafts = [_with_stored_ids(draft, applied_changes) for draft in drafts]
    held = await hold.hold(tx, settings, run.scope, drafts)
    applied_changes.held_count = len(held.proposal_ids)
    if held.without_evidence:
        applied_changes.skipped.append({"code": RejectionCode.CHANGED_MEANWHILE})
    if not held.over_limit:
        return outcome
    applied_changes.skipped.append({"code": RejectionCode.OVER_QUOTA})
    return replace(outcome, turns=[], has_more=True)


async def _without_undone(
    tx: Transaction, drafts: Sequence[ProposalDraft], applied_changes: AppliedChanges
) -> list[ProposalDraft]:
    """Leave out merges that somebody has undone: a judge that is trusted later would do them again."""
    merged_ids = {memory_id for draft in drafts for memory_id in draft.replaces}
    if not merged_ids:
        return list(drafts)
    undone = await undone_change_queries.find(tx, merged_ids)
    forbidden = [draft for draft in drafts if undone.forbids_merge(draft.replaces)]
    applied_changes.skipped += [
        {"code": RejectionCode.UNDONE_BEFORE, "ids": list(draft.replaces)} for draft in forbidden
    ]
    return [draft for draft in drafts if draft not in forbidden]


def _with_stored_ids(draft: ProposalDraft, applied_changes: AppliedChanges) -> ProposalDraft:
    """Name the memory that stands for a new one of this pass: it may have been there already."""
    stored = applied_changes.created.get(draft.closes or "")
    return draft if stored is None else replace(draft, closes=stored.id)
