"""Merges of memories as statements to decide about, and what follows from what is decided."""

from collections.abc import Sequence

from shared.dreams.runs.outcome import NewMemory, Outcome
from shared.dreams.verification import fidelity
from shared.dreams.verification.check import Merge
from shared.dreams.verification.merge import row_from_merge
from shared.dreams.verification.rejection import Rejection, RejectionCode, item_reference
from shared.memory.longterm.as_evidence import MEMORY, evidence_of_memory, labels_of
from shared.memory.longterm.memory import Memory
from shared.memory.proposals.proposal import ProposalDraft, ProposalKind
from shared.verification.decision import Decision, Fate, Statement
from shared.verification.signs import Sign


def merged_statement(merge: Merge, sources: Sequence[Memory]) -> Statement:
    """Return the text of a merge as a statement whose evidence are its sources."""
    evidence = [evidence_of_memory(memory, MEMORY) for memory in sources]
    labels = [label for memory in sources for label in labels_of(memory)]
    is_lossy = fidelity.lost_content(merge.fields.content, sources) is not None
    signs = frozenset({Sign.LOST} if is_lossy else ())
    return Statement(merge.fields.content, evidence, context=labels, is_retelling=True, found_signs=signs)


def add_merge(outcome: Outcome, merge: Merge, sources: Sequence[Memory], decision: Decision) -> None:
    """Add what becomes of a merge to the outcome of its pass. If it is not stored, its sources stay live."""
    row = row_from_merge(merge.fields) | decision.columns
    if decision.fate is Fate.STORED:
        outcome.creations.append(NewMemory(row, tuple(sources)))
    elif decision.fate is Fate.HELD:
        draft = ProposalDraft(
            ProposalKind.MERGE,
            row,
            evidence_memory_ids=merge.source_ids,
            replaces=merge.source_ids,
            signs=decision.signs,
            edited_at={memory.id: memory.updated_at for memory in sources},
        )
        outcome.held.append(draft)
    else:
        item = item_reference("replacement", merge.source_ids, merge.index)
        detail = "the judge does not find it in the sources"
        outcome.rejections.append(Rejection(RejectionCode.NOT_SAID, item, detail).to_json())
