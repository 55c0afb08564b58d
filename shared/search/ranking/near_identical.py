"""Decide of two statements in nearly the same words whether they say different things about the same.

They do if one denies what the other says, or if they differ in one slot that has one value at a time: "Ada
lives in Berlin" and "Ada lives in Munich". They do not if the slot is the subject ("Ada lives", "Ben
lives"), if there are two slots ("the kitchen budget is 8", "the garden budget is 3"), if both can be true
("likes tea", "likes coffee"), or if they tell what happened ("I ran 5 km", "I ran 8 km"). In doubt they do
not: a slot of words counts only behind words that are known to have one value.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.search.ranking import statement_words as known_words
from shared.search.ranking.question import Question
from shared.search.ranking.statement import Statement

_MIN_COMMON = 0.5
"""The share of the words of the longer statement that both have."""
_MAX_WORDS = 4
"""Words of a slot that is no number or date."""
_MAX_VALUE_WORDS = 7


@dataclass(frozen=True, slots=True)
class _Slot:
    """Where two statements differ: the words before it, those of each statement, and the words after it."""

    before: Sequence[str]
    older: Sequence[str]
    newer: Sequence[str]
    after: Sequence[str]

    @property
    def words(self) -> set[str]:
        return {*self.older, *self.newer} - known_words.CONNECTIONS

    @property
    def size(self) -> int:
        return max(len(self.older), len(self.newer))

    @property
    def is_value(self) -> bool:
        """Whether it is a number, a date or a time."""
        return self.size <= _MAX_VALUE_WORDS and all(map(_is_value_word, (*self.older, *self.newer)))


def contradict(question: Question, older: Statement, newer: Statement) -> bool:
    """Return whether two statements in nearly the same words can't be true at the same time."""
    if not are_near(older.core, newer.core):
        return False
    if older.core == newer.core:
        return older.is_negated != newer.is_negated
    slot = _find_slot(older.core, newer.core)
    if slot is None or older.is_negated != newer.is_negated or _is_named(question, slot):
        return False
    if older.is_event or newer.is_event:
        return False
    if slot.is_value:
        return not _is_name(slot) and (not _is_appointment(slot) or newer.marks_change)
    return _is_one_phrase(slot) and (_are_opposites(question, slot) or _has_one_value(slot))


def are_near(older: Sequence[str], newer: Sequence[str]) -> bool:
    """Return whether two texts have most words in common, whatever these say."""
    older_words, newer_words = set(older), set(newer)
    common = len(older_words & newer_words)
    return common > 0 and common >= _MIN_COMMON * max(len(older_words), len(newer_words))


def _find_slot(older: Sequence[str], newer: Sequence[str]) -> _Slot | None:
    """Return where two statements differ that begin alike; None if one only says more than the other."""
    shorter = min(len(older), len(newer))
    first = 0
    while first < shorter and older[first] == newer[first]:
        first += 1
    last = 0
    while last < shorter - first and older[-1 - last] == newer[-1 - last]:
        last += 1
    end = len(older) - last
    slot = _Slot(older[:first], older[first:end], newer[first : len(newer) - last], older[end:])
    return slot if slot.before and slot.older and slot.newer else None


def _is_named(question: Question, slot: _Slot) -> bool:
    """Return whether a question names one of the two: "Who lives in Berlin?"."""
    return not question.is_yes_no and not question.terms.isdisjoint(slot.words - set(slot.before))


def _is_value_word(word: str) -> bool:
    return word[0].isdigit() or word in known_words.VALUES or word in known_words.CONNECTIONS


def _is_name(slot: _Slot) -> bool:
    """Return whether the number is a name: "room 12"."""
    is_subject = bool(slot.after) and slot.after[0] in known_words.BESIDE_SUBJECTS
    return slot.older[0][0].isdigit() and (slot.before[-1] in known_words.LABELLED or is_subject)


def _is_appointment(slot: _Slot) -> bool:
    """Return whether someone has something at a time, and can have another one at another time."""
    return "have" in slot.before and not slot.words.isdisjoint(known_words.CALENDAR)


def _is_one_phrase(slot: _Slot) -> bool:
    """Return whether the slot is short, of one kind ("in Berlin", not "in 2 shifts"), and not two slots."""
    older, newer = (any(map(_is_time, words)) for words in (slot.older, slot.newer))
    return slot.size <= _MAX_WORDS and older == newer and set(slot.older).isdisjoint(slot.newer)


def _is_time(word: str) -> bool:
    return word[0].isdigit() or word in known_words.CALENDAR


def _are_opposites(question: Question, slot: _Slot) -> bool:
    """Return whether one alone can be true: "on", "off"; or "married" and another word, if that is asked."""
    if any(slot.words <= group for group in known_words.OPPOSITES):
        return True
    is_asked = question.is_yes_no and not question.terms.isdisjoint(slot.words)
    return is_asked and slot.before[-1] in known_words.COPULAS


def _has_one_value(slot: _Slot) -> bool:
    """Return whether the words before the slot have one value at a time."""
    subject, head = set(slot.before[:-1]), slot.before[-1]
    has_several = not subject.isdisjoint(known_words.SEVERAL)
    if head in known_words.CALLED:
        return not has_several
    if head in known_words.COPULAS:
        return not (subject.isdisjoint(known_words.ATTRIBUTES) or has_several)
    if head in known_words.PLACES:
        return not subject.isdisjoint(known_words.STATES)
    return head in known_words.ONE_AT_A_TIME or (head in known_words.ONE_FOR_A_PURPOSE and bool(slot.after))
