"""What the parts of a pass have mined so far, as one outcome.

The next part is shown what the parts before have found, under the ids that these memories will have. So a
change in a long conversation closes what was said in it before, as if both had been mined apart.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from shared.dreams.passes import facts
from shared.dreams.runs.outcome import Closing, NewMemory, Outcome, Reinforcement
from shared.dreams.verification import fact_plan
from shared.dreams.verification.fact_check import CheckedFacts, Fact
from shared.dreams.verification.fact_plan import ProposedFact, Relation, TurnKey
from shared.foundation.origin import Origin
from shared.foundation.scope import Scope
from shared.foundation.stages import MemoryState
from shared.memory.longterm import new_rows, sources
from shared.memory.longterm.fingerprint import normalize
from shared.memory.longterm.memory import Memory, MemoryDraft


@dataclass(frozen=True, slots=True)
class _Found:
    """A fact that no memory says yet, as the memory that it will be, with the turns that say it.

    Where several parts say it, its origin is that of the greatest trust, as of a text that is saved again.
    """

    memory: Memory
    turn_keys: set[TurnKey]

    def said_again(self, fact: Fact, turn_keys: set[TurnKey]) -> "_Found":
        """Return it as it is once a later part has said it in the same words."""
        trust = max(self.memory.origin.trust, fact.trust)
        memory = self.memory.model_copy(update={"origin": Origin.derived([trust])})
        return _Found(memory, self.turn_keys | turn_keys)


class MinedFacts:
    """Collects the accepted facts of one part after the other."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._found: dict[str, _Found] = {}
        self._reinforced: dict[str, tuple[Memory, set[TurnKey]]] = {}
        self._closings: dict[str, Closing] = {}
        self._proposed: list[ProposedFact] = []
        self._rejections: list[dict[str, object]] = []

    def add(self, proposed: Iterable[ProposedFact], checked: CheckedFacts) -> None:
        """Add what the model proposed about a part, and what of it was accepted."""
        self._proposed += proposed
        self._rejections += [
            {
                "code": rejection.code,
                "detail": rejection.detail,
                "words": list(rejection.words),
                **rejection.item,
            }
            for rejection in checked.rejections
        ]
        for fact in checked.facts:
            self._add_fact(fact)

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
        )

    def _add_fact(self, fact: Fact) -> None:
        turn_keys = {(turn.session_id, turn.seq) for turn in fact.sources}
        if fact.of is not None and fact.relation is Relation.SAME:
            self._reinforce(fact.of, turn_keys)
            return
        found = self._with_text(fact.proposed.content)
        if found is None:
            memory = self._memory(fact)
            found = self._found[memory.id] = _Found(memory, turn_keys)
        else:
            found = self._found[found.memory.id] = found.said_again(fact, turn_keys)
        if fact.of is not None and fact.of.id not in {found.memory.id, *self._closings}:
            self._closings[fact.of.id] = Closing(fact.of, found.memory.id, fact.occurred_at)

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
        return row | {"id": memory.id}
