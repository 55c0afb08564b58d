"""Decide which facts that a model took out of conversations may be stored, and why the others may not.

The turns and the memories that the model has read are by unknown authors, so nothing in a plan is trusted.
A fact is stored only with turns that the model was shown and that can have said it:

- A user said it in one of its sources. What an assistant said counts only with the user's next turn, in
  which the user can have confirmed it.
  An answer that denies it ("No, in Kiel") confirms only what it says itself.
- Its numbers, days and times stand in these sources, and its names in the conversation so far or in the
  memory that it is about. It denies nothing that they don't deny, and nothing that they deny is said.
- Not all of its sources were mined before: each turn tells a fact once.
- A fact that repeats or replaces a memory names one that was shown, and shares a word with it. Nothing is
  lost when a memory is replaced: it stays readable, as valid until then. A fact with the text of a memory
  repeats it, whatever the model calls it.
- A memory about health, money or credentials, and one that is important or often confirmed, is closed by no
  fact (`closing`). What was said later is then stored beside it, and the closing alone is refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from shared.conversation.turns.turn import Turn
from shared.dreams.verification import closing, common_words, merge, negation, swaps
from shared.dreams.verification.fact_plan import ProposedFact, Relation, TurnKey
from shared.dreams.verification.negation import SaidDenials
from shared.dreams.verification.rejection import Rejection, RejectionCode, item_reference
from shared.dreams.verification.said import SaidTurns
from shared.dreams.verification.text_parser import parse_text
from shared.foundation import errors, validation
from shared.foundation.categories import ACTIVE_PLANS, is_anti_pattern, is_below
from shared.foundation.origin import Trust, least
from shared.foundation.roles import Role
from shared.memory.longterm.fingerprint import normalize
from shared.memory.longterm.memory import Memory
from shared.search.text import tokenizer

MAX_FACT = 1000
"""Characters. A longer text is no single fact."""
_MAX_WORDS = 30


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
    """A fact that may be stored. `of` is the memory that it repeats or replaces; it has no other relation."""

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
    """The accepted and the rejected part of a plan.

    Each item of the plan is in exactly one of them, but one that is accepted without what it would have
    closed: its closing is a rejection of its own.
    """

    facts: tuple[Fact, ...]
    rejections: tuple[Rejection, ...]


class _RuleViolation(Exception):
    """An item breaks a rule. Raised and caught in this module only."""

    def __init__(self, code: RejectionCode, detail: str, words: Sequence[str] = ()) -> None:
        super().__init__(detail)
        self.code = code
        self.words = tuple(words)


def check(plan: Sequence[ProposedFact], shown: ShownConversation) -> CheckedFacts:
    """Return which facts of a plan may be stored, in the plan's order."""
    facts: list[Fact] = []
    rejections: list[Rejection] = []
    taken_ids: set[str] = set()
    said = SaidTurns(tuple(shown.turns.values()))
    for index, proposed in enumerate(plan):
        try:
            fact = _checked_fact(proposed, shown, said, taken_ids)
        except _RuleViolation as error:
            item = item_reference("fact", filter(None, (proposed.of_id,)), index)
            rejections.append(Rejection(error.code, item, str(error), error.words))
        else:
            if fact.of is not None and _must_stay_open(fact.relation, fact.of):
                rejections.append(_refused_closing(fact.of, index))
                fact = replace(fact, relation=Relation.NEW, of=None)
            facts.append(fact)
            taken_ids |= {fact.of.id} if fact.of else set()
    return CheckedFacts(tuple(facts), tuple(rejections))


def _must_stay_open(relation: Relation, memory: Memory) -> bool:
    return relation is Relation.CHANGED and closing.must_stay_open(memory)


def _refused_closing(memory: Memory, index: int) -> Rejection:
    detail = "is important, often confirmed, or about health, money or credentials: only a caller closes it"
    return Rejection(RejectionCode.PROTECTED, item_reference("closing", (memory.id,), index), detail)


def _checked_fact(
    proposed: ProposedFact, shown: ShownConversation, said: SaidTurns, taken_ids: set[str]
) -> Fact:
    _check_content(proposed.content)
    sources = _checked_sources(proposed, shown)
    relation, of_memory = _checked_memory(proposed, shown, taken_ids)
    fact = Fact(proposed, relation, of_memory, sources)
    _check_answers(fact, shown, said)
    if fact.relation is not Relation.SAME:  # of which nothing is stored but its sources
        _check_specifics(fact, said)
        _check_denials(fact, shown, said)
        _check_swaps(fact, said)
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


def _check_answers(fact: Fact, shown: ShownConversation, said: SaidTurns) -> None:
    """Refuse what only an assistant says if the user's answer denies it."""
    agreed = [turn for turn in fact.sources if not _is_denied(turn, shown)]
    if len(agreed) == len(fact.sources):
        return
    content = fact.proposed.content
    replaced = fact.of if fact.relation is Relation.CHANGED else None
    allowed = said.specifics_of(agreed, replaced.content if replaced else "")
    words = _subjects(" ".join(turn.content for turn in agreed))
    if parse_text(content).certain_missing_in(allowed) or not _subjects(content) & words:
        raise _RuleViolation(RejectionCode.UNCONFIRMED, "the user denies what the assistant says")


def _is_denied(turn: Turn, shown: ShownConversation) -> bool:
    answer = _next_user_turn(turn, shown) if turn.role is Role.ASSISTANT else None
    return answer is not None and negation.is_denying_answer(answer.content)


def _check_specifics(fact: Fact, said: SaidTurns) -> None:
    """Refuse numbers and days that the sources lack, and names that the conversation so far lacks.

    A name may be of the memory that the fact is about, too: "it" may be what the memory is about.
    """
    allowed = said.specifics_of(fact.sources, fact.of.content if fact.of else "")
    parsed = parse_text(fact.proposed.content)
    if added := [
        word for word in parsed.certain_missing_in(allowed) if word.casefold() not in common_words.USER_WORDS
    ]:
        detail = "its sources don't have these"
        raise _RuleViolation(RejectionCode.ADDS_SPECIFICS, detail, tuple(dict.fromkeys(added))[:_MAX_WORDS])


def _check_denials(fact: Fact, shown: ShownConversation, said: SaidTurns) -> None:
    answered = [SaidDenials.of_denied(turn.content) for turn in fact.sources if _is_denied(turn, shown)]
    denials = SaidDenials.join([said.denials_of(fact.sources), *answered])
    if words := negation.contradicted_in(fact.proposed.content, denials):
        detail = "these are denied in the fact or in its sources, not in both"
        raise _RuleViolation(RejectionCode.CHANGES_NEGATION, detail, words)


def _check_swaps(fact: Fact, said: SaidTurns) -> None:
    if words := swaps.swapped_in_clauses(fact.proposed.content, said.clauses_of(fact.sources)):
        raise _RuleViolation(RejectionCode.SWAPS_SPECIFICS, "its sources say this of another", tuple(words))


def _check_relation(fact: Fact, memory: Memory) -> None:
    """Refuse to repeat a memory that says less, or to replace one about something else."""
    content = fact.proposed.content
    if fact.relation is Relation.SAME:
        if added := parse_text(content).certain_missing_in(parse_text(_shown_text(memory))):
            raise _RuleViolation(RejectionCode.ADDS_SPECIFICS, "the memory does not say these", added)
        return
    if normalize(content) == normalize(memory.content):
        raise _RuleViolation(RejectionCode.UNCHANGED, "says what the memory says")
    if closing.must_stay_open(memory):
        return
    if not _subjects(content) & _subjects(memory.content):
        raise _RuleViolation(RejectionCode.UNRELATED, "shares no word with the memory that it replaces")
    if max(memory.at, memory.valid_from or memory.at) > fact.occurred_at:
        raise _RuleViolation(RejectionCode.OUTDATED, "is older than the memory that it replaces")


def _subjects(text: str) -> frozenset[str]:
    return frozenset(tokenizer.tokenize_query(text)) - common_words.GENERIC_SUBJECTS


def _shown_text(memory: Memory) -> str:
    days = [moment.astimezone(UTC).date().isoformat() for moment in (memory.occurred_at, memory.at) if moment]
    return "\n".join([memory.content, memory.category or "", *memory.tags, *days])
