"""What the parts of a pass have mined so far, as one outcome.

The next part is shown what the parts before have found, under the ids that these memories will have. So a
change in a long conversation closes what was said in it before, as if both had been mined apart.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shared.dreams.passes import facts
from shared.dreams.runs.outcome import Closing, Contest, NewMemory, Outcome, Reinforcement
from shared.dreams.verification import fact_plan
from shared.dreams.verification.fact_check import CheckedFacts, Fact
from shared.dreams.verification.fact_plan import ProposedFact, Relation, TurnKey
from shared.dreams.verification.rejection import Rejection, RejectionCode, item_reference
from shared.foundation.origin import Origin
from shared.foundation.scope import Scope
from shared.foundation.stages import MemoryState
from shared.memory.longterm import new_rows, sources
from shared.memory.longterm.fingerprint import normalize
from shared.memory.longterm.memory import Memory, MemoryDraft
from shared.memory.proposals.proposal import ProposalDraft, ProposalKind
from shared.verification.claim import Judgement, Verdict
from shared.verification.decision import ClosingFate, Decision, Fate


@dataclass(frozen=True, slots=True)
class _Found:
    """A fact that no memory says yet, as the memory that it will be, with the turns that say it.

    Where several parts say it, its origin is that of the greatest trust, as of a text that is saved again.
    """

    memory: Memory
    turn_keys: set[TurnKey]
    decision: Decision

    def said_again(self, fact: Fact, turn_keys: set[TurnKey]) -> "_Found":
        """Return it as it is once a later part has said it in the same words."""
        trust = max(self.memory.origin.trust, fact.trust)
        memory = self.memory.model_copy(update={"origin": Origin.derived([trust])})
        return _Found(memory, self.turn_keys | turn_keys, self.decision)


class MinedFacts:
    """Collects the accepted facts of one part after the other."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._found: dict[str, _Found] = {}
        self._reinforced: dict[str, tuple[Memory, set[TurnKey]]] = {}
        self._closings: dict[str, Closing] = {}
        self._contests: list[Contest] = []
        self._held: list[ProposalDraft] = []
        self._proposed: list[ProposedFact] = []
        self._rejections: list[dict[str, object]] = []

    def add(
        self, proposed: Iterable[ProposedFact], checked: CheckedFacts, decisions: Sequence[Decision]
    ) -> None:
        """Add what the model proposed about a part, and what becomes of each fact that was checked."""
        self._proposed += proposed
        self._rejections += [rejection.to_json() for rejection in checked.rejections]
        for fact, decision in zip(checked.facts, decisions, strict=True):
            self._add_fact(fact, decision)

    def open_memories(self, known: Iterable[Memory]) -> list[Memory]:
        """Return what is known by now: what was found first, then what was known before. Nothing closed."""
        memories = [*(found.memory for found in self._found.values()), *known]
        return [memory for memory in memories if memory.id not in self._closings]

    def outcome(self) -> Outcome:
        """Return the changes, what was proposed, and what was rejected."""
        return Outcome(
            proposed=fact_plan.as_json(self._proposed),
            rejections=list(self._rejections),
            creations=[NewMemory(self._row(found)) for found in self._found.values()],
            reinforcements=[
                Reinforcement(memory, tuple(sources.from_turns(turn_keys)))
                for memory, turn_keys in self._reinforced.values()
            ],
            closings=list(self._closings.values()),
            contests=[item for item in self._contests if item.memory.id not in self._closings],
            held=list(self._held),
        )

    def _add_fact(self, fact: Fact, decision: Decision) -> None:
        turn_keys = {(turn.session_id, turn.seq) for turn in fact.sources}
        if decision.fate is Fate.REFUSED:
            self._reject("fact", fact, decision.judgement)
        elif decision.fate is Fate.HELD:
            self._hold(fact, turn_keys, decision)
        elif fact.of is not None and fact.relation is Relation.SAME:
            self._reinforce(fact.of, turn_keys)
        else:
            self._store(fact, turn_keys, decision)

    def _store(self, fact: Fact, turn_keys: set[TurnKey], decision: Decision) -> None:
        found = self._with_text(fact.proposed.content)
        if found is None:
            memory = self._memory(fact)
            found = self._found[memory.id] = _Found(memory, turn_keys, decision)
        else:
            found = self._found[found.memory.id] = found.said_again(fact, turn_keys)
        if fact.of is not None and fact.of.id not in {found.memory.id, *self._closings}:
            self._end(fact, fact.of, found, decision)

    def _end(self, fact: Fact, earlier: Memory, found: _Found, decision: Decision) -> None:
        """End an earlier memory by what was found, or let both stand, as was decided."""
        match decision.closing:
            case ClosingFate.CLOSED:
                is_judged = decision.judge_model is not None
                closing = Closing(earlier, found.memory.id, fact.occurred_at, is_judged)
                self._closings[earlier.id] = closing
            case ClosingFate.CONTESTED:
                self._contests.append(Contest(earlier, found.memory.id))
            case ClosingFate.HELD:
                self._contests.append(Contest(earlier, found.memory.id))
                self._hold(fact, found.turn_keys, decision)
            case ClosingFate.REFUSED:
                self._reject("closing", fact, None)

    def _hold(self, fact: Fact, turn_keys: set[TurnKey], decision: Decision) -> None:
        found = _Found(self._memory(fact), turn_keys, decision)
        draft = ProposalDraft(
            ProposalKind.FACT,
            self._row(found),
            tuple(sorted(turn_keys)),
            closes=fact.of.id if fact.of is not None and fact.relation is Relation.CHANGED else None,
            signs=decision.signs,
        )
        self._held.append(draft)

    def _reject(self, kind: str, fact: Fact, judgement: Judgement | None) -> None:
        """Note what the judge refused. Its quote is somebody's words, and is not kept."""
        code = RejectionCode.NOT_SAID
        if judgement is not None and judgement.verdict is Verdict.CONTRADICTED:
            code = RejectionCode.CONTRADICTED
        item = item_reference(kind, [fact.of.id] if fact.of else [], self._proposed.index(fact.proposed))
        detail = "the judge does not find it in the evidence"
        self._rejections.append(Rejection(code, item, detail).to_json())

    def _reinforce(self, memory: Memory, turn_keys: set[TurnKey]) -> None:
        if memory.id in self._found:
            self._found[memory.id].turn_keys.update(turn_keys)
        else:
            self._reinforced.setdefault(memory.id, (memory, set()))[1].update(turn_keys)

    def _with_text(self, content: str) -> _Found | None:
        """Return what a part has found already in these words, and no later one has changed."""
        text = normalize(content)
        found = (item for id_, item in self._found.items() if id_ not in self._closings)
        return next((item for item in found if normalize(item.memory.content) == text), None)

    def _memory(self, fact: Fact) -> Memory:
        """Return the memory that a fact will be, with an id of its own."""
        origin = Origin.derived([fact.trust])
        row = new_rows.row_from_learned_draft(facts.to_draft(fact), origin)
        computed = {"fingerprint", "search_terms"}
        columns = {name: value for name, value in row.items() if name not in computed}
        return Memory.model_validate(
            columns
            | {
                "tenant": self._scope.tenant,
                "agent_id": self._scope.agent_id,
                "user_id": self._scope.user_id,
                "state": MemoryState.FINAL,
                "source": None,
                "created_at": fact.occurred_at,
                "updated_at": None,
                "last_seen_at": fact.occurred_at,
                "superseded_by": [],
                "archived_at": None,
                "archive_reason": None,
                "version": 1,
                "content_version": 1,
                "origin": origin,
            }
        )

    def _row(self, found: _Found) -> dict[str, object]:
        """Return the row to insert; Postgres sets when it was created and last seen."""
        memory = found.memory
        fields = {
            name: getattr(memory, name)
            for name in ("content", "category", "importance", "occurred_at", "valid_from")
        }
        draft = MemoryDraft(**fields, tags=tuple(memory.tags), enrich=False)
        turns = sources.from_turns(found.turn_keys)
        row = new_rows.row_from_learned_draft(draft, memory.origin, turns)
        return row | {"id": memory.id} | found.decision.columns
