"""The drafts of a rewritten note as statements to decide about, with what is decided about each."""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.memory.longterm.as_evidence import NOTE, evidence_of_memory, labels_of
from shared.memory.longterm.memory import Memory, MemoryDraft
from shared.platform.resources import Resources
from shared.platform.spend.charge import Payer, Purpose
from shared.verification import decision
from shared.verification.decision import Decision, Fate, Statement
from shared.verification.trusted_judge import find_trusted_judge


@dataclass(frozen=True, slots=True)
class DecidedDraft:
    """A draft and what becomes of it."""

    draft: MemoryDraft
    decision: Decision


@dataclass(frozen=True, slots=True)
class Retelling:
    """What a model has made of a note."""

    drafts: Sequence[DecidedDraft]

    def with_fate(self, fate: Fate) -> list[DecidedDraft]:
        """Return the drafts of which this becomes."""
        return [item for item in self.drafts if item.decision.fate is fate]

    @property
    def reason_against(self) -> str | None:
        """Why nothing of it is stored; None if something is, or if there is nothing."""
        if not self.drafts or self.with_fate(Fate.STORED):
            return None
        held = len(self.with_fate(Fate.HELD))
        return f"{held} statements wait for a decision" if held else "the judge does not find it in the note"


async def decide(resources: Resources, note: Memory, drafts: Sequence[MemoryDraft]) -> Retelling:
    """Decide about the drafts of a note, which is their evidence. No transaction is open meanwhile."""
    judge = await find_trusted_judge(resources) if drafts else None
    payer = Payer(note.tenant, note.agent_id, note.user_id, Purpose.JUDGE)
    statements = [_statement(note, draft) for draft in drafts]
    decisions = await decision.decide(judge, payer, statements)
    return Retelling([DecidedDraft(*pair) for pair in zip(drafts, decisions, strict=True)])


def _statement(note: Memory, draft: MemoryDraft) -> Statement:
    evidence = evidence_of_memory(note, NOTE)
    return Statement(draft.content, [evidence], context=labels_of(note), is_retelling=True)
