"""Check the form of facts that a model took out of conversations: what must hold whatever a judge says.

The turns and the memories that the model has read are by unknown authors, so nothing in a plan is trusted.
A fact names turns that the model was shown and that can have said it:

- A user said it in one of its sources. What an assistant said counts only with the user's next turn, in
  which the user can have confirmed it.
- Each quote stands in one of its sources, as it is written there.
- Not all of its sources were mined before: each turn tells a fact once.
- A fact that repeats or replaces a memory names one that was shown. A fact with the text of a memory
  repeats it, whatever the model calls it; one that says more than the memory is new.

Whether its sources say the fact, and whether a memory has ended by it, is decided in `shared/verification`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from shared.conversation.turns.turn import Turn
from shared.dreams.verification import merge
from shared.dreams.verification.fact_plan import ProposedFact, Relation, TurnKey
from shared.dreams.verification.rejection import Rejection, RejectionCode, item_reference
from shared.foundation import errors, validation
from shared.foundation.categories import ACTIVE_PLANS, is_anti_pattern, is_below
from shared.foundation.origin import Trust, least
from shared.foundation.roles import Role
from shared.language import negation, wording
from shared.language.text_parser import parse_text
from shared.memory.longterm.fingerprint import normalize
from shared.memory.longterm.memory import Memory
from shared.verification import quotes

_MIN_REPEATED = 0.6
"""Share of its words that a fact has of the memory that it repeats: rather stored twice than lost."""
MAX_FACT = 1000
"""Characters. A longer text is no single fact."""


@dataclass(frozen=True, slots=True)
class ShownConversation:
    """What the model was shown: turns by (session id, sequence number), and memories by id.

    The turns in `earlier` were mined before. They are shown so that the others can be understood.
    """

    turns: Mapping[TurnKey, Turn]
    memories: Mapping[str, Memory]
    earlier: frozenset[TurnKey] = frozenset()

    def memory_that_says(self, content: str) -> Memory | None:
        """Return a live memory of this text, or None."""
        text = normalize(content)
        memories = (memory for memory in self.memories.values() if memory.archived_at is None)
        return next((memory for memory in memories if normalize(memory.content) == text), None)


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact of a form that can be stored. `of` is the memory that it repeats or replaces, if it does."""

    proposed: ProposedFact
    relation: Relation
    of: Memory | None
    sources: tuple[Turn, ...]

    @property
    def trust(self) -> Trust:
        """How far it is trusted: as the turns that say it.

        What an assistant has said or asked counts only with the user's answer, so it lowers nothing.
        """
        return least(turn.origin.trust for turn in self.sources if turn.role is not Role.ASSISTANT)

    @property
    def occurred_at(self) -> datetime:
        """When it came to hold: the time that the model gave if it is not later than its sources'."""
        said_at = min(turn.created_at for turn in self.sources)
        given = self.proposed.occurred_at
        return given if given is not None and given <= said_at else said_at


@dataclass(frozen=True, slots=True)
class CheckedFacts:
    """The part of a plan that has the form of facts, and the rejected part: each item is in exactly one."""

    facts: tuple[Fact, ...]
    rejections: tuple[Rejection, ...]


class _RuleViolation(Exception):
    """An item breaks a rule. Raised and caught in this module only."""

    def __init__(self, code: RejectionCode, detail: str) -> None:
        super().__init__(detail)
        self.code = code


def check(plan: Sequence[ProposedFact], shown: ShownConversation) -> CheckedFacts:
    """Return which facts of a plan have the form of facts, in the plan's order."""
    facts: list[Fact] = []
    rejections: list[Rejection] = []
    taken_ids: set[str] = set()
    for index, proposed in enumerate(plan):
        try:
            fact = _checked_fact(proposed, shown, taken_ids)
        except _RuleViolation as error:
            item = item_reference("fact", filter(None, (proposed.of_id,)), index)
            rejections.append(Rejection(error.code, item, str(error)))
        else:
            facts.append(fact)
            taken_ids |= {fact.of.id} if fact.of else set()
    return CheckedFacts(tuple(facts), tuple(rejections))


def _checked_fact(proposed: ProposedFact, shown: ShownConversation, taken_ids: set[str]) -> Fact:
    _check_content(proposed.content)
    sources = _checked_sources(proposed, shown)
    _check_quotes(proposed, sources)
    relation, of_memory = _checked_memory(proposed, shown, taken_ids)
    fact = Fact(proposed, relation, of_memory, sources)
    if of_memory is not None:
        _check_relation(fact, of_memory)
    return fact


def _check_content(content: str) -> None:
    if not any(character.isalnum() for character in content):
        raise _RuleViolation(RejectionCode.BLANK, "a fact without content")
    try:
        validation.check_text(content, "content", MAX_FACT)
    except errors.TooLarge as error:
        raise _RuleViolation(RejectionCode.TOO_LONG, str(error)) from error
    except errors.Invalid as error:
        raise _RuleViolation(RejectionCode.UNSTORABLE, str(error)) from error


def _checked_sources(proposed: ProposedFact, shown: ShownConversation) -> tuple[Turn, ...]:
    """Return the turns that say a fact; raise _RuleViolation unless a user said or could confirm it."""
    if not proposed.sources:
        raise _RuleViolation(RejectionCode.NO_SOURCES, "a fact needs a turn that says it")
    if not shown.turns.keys() >= set(proposed.sources):
        raise _RuleViolation(RejectionCode.UNKNOWN_ID, "names a turn that was not shown")
    if shown.earlier.issuperset(proposed.sources):
        raise _RuleViolation(RejectionCode.READ_BEFORE, "names only turns that were mined before")
    turns = tuple(shown.turns[key] for key in sorted(proposed.sources))
    if any(turn.role not in {Role.USER, Role.ASSISTANT} for turn in turns):
        raise _RuleViolation(RejectionCode.UNCONFIRMED, "only users and assistants state facts")
    for turn in turns:
        if turn.role is Role.ASSISTANT and _next_user_turn(turn, shown) not in turns:
            detail = "an assistant's words count only with the turn in which the user confirms them"
            raise _RuleViolation(RejectionCode.UNCONFIRMED, detail)
    return turns


def _check_quotes(proposed: ProposedFact, sources: Sequence[Turn]) -> None:
    said = [quotes.normalised(turn.content) for turn in sources]
    for quote in proposed.quotes:
        if not any(quotes.stands_in(quote, text) for text in said):
            raise _RuleViolation(RejectionCode.MISQUOTED, "its sources don't have the words that it quotes")


def _next_user_turn(turn: Turn, shown: ShownConversation) -> Turn | None:
    """Return the user's turn that follows an assistant's before the assistant speaks again, or None."""
    later_turns = (
        other
        for (session_id, seq), other in sorted(shown.turns.items(), key=lambda item: item[0])
        if session_id == turn.session_id and seq > turn.seq
    )
    following = next(later_turns, None)
    return following if following is not None and following.role is Role.USER else None


def _checked_memory(
    proposed: ProposedFact, shown: ShownConversation, taken_ids: set[str]
) -> tuple[Relation, Memory | None]:
    """Return what a fact is to which memory; raise _RuleViolation if that memory may not be changed."""
    relation = proposed.relation
    if relation is None:
        raise _RuleViolation(RejectionCode.MALFORMED, "its relation is none of new, same, changed")
    if relation is Relation.NEW:
        memory = shown.memory_that_says(proposed.content)
        if memory is None:
            return Relation.NEW, None
        relation = Relation.SAME
    else:
        memory = shown.memories.get(proposed.of_id or "")
    if memory is None:
        raise _RuleViolation(RejectionCode.UNKNOWN_ID, "names a memory that was not shown")
    if relation is Relation.SAME and _says_more(proposed.content, memory):
        return Relation.NEW, None
    if memory.archived_at is not None:
        raise _RuleViolation(RejectionCode.NOT_LIVE, "is archived")
    if memory.id in taken_ids:
        raise _RuleViolation(RejectionCode.SOURCE_TAKEN, "an earlier fact is about this memory")
    if relation is Relation.CHANGED and _is_protected(memory):
        raise _RuleViolation(RejectionCode.PROTECTED, "is a plan, an anti-pattern, or requires permission")
    return relation, memory


def _is_protected(memory: Memory) -> bool:
    return (
        is_below(ACTIVE_PLANS, memory.category)
        or is_anti_pattern(memory.category, memory.tags)
        or merge.needs_permission(memory)
    )


def _check_relation(fact: Fact, memory: Memory) -> None:
    """Refuse to replace a memory that says the same, or that is newer."""
    if fact.relation is Relation.SAME:
        return
    if normalize(fact.proposed.content) == normalize(memory.content):
        raise _RuleViolation(RejectionCode.UNCHANGED, "says what the memory says")
    if max(memory.at, memory.valid_from or memory.at) > fact.occurred_at:
        raise _RuleViolation(RejectionCode.OUTDATED, "is older than the memory that it replaces")


def _says_more(content: str, memory: Memory) -> bool:
    """Tell whether a text is more than a repetition of a memory: in names, numbers, words or a denial."""
    shown = _shown_text(memory)
    is_reworded = wording.share(wording.content_stems(content), wording.content_stems(shown)) < _MIN_REPEATED
    is_turned = negation.denies(content) is not negation.denies(memory.content)
    return is_turned or is_reworded or bool(parse_text(content).certain_missing_in(parse_text(shown)))


def _shown_text(memory: Memory) -> str:
    days = [moment.astimezone(UTC).date().isoformat() for moment in (memory.occurred_at, memory.at) if moment]
    return "\n".join([memory.content, memory.category or "", *memory.tags, *days])
