"""Decide whether two texts in different words give different values for what a question asks.

"My library has 45 sources" and "I've extended my library to 52 sources" do, if the question is how many
sources the library has. Both texts must have a value of the kind that the question asks for, and words of the
question close to it. The newer one must say that the value is another than before ("increased", "new"), or
both must have most words of the question.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from shared.search.ranking import near_identical
from shared.search.ranking import statement_words as known_words
from shared.search.ranking.question import Question
from shared.search.ranking.statement import read_statement, split_words, to_term

_REACH = 12
"""Words before and behind a value within which the words of the question are looked for."""
_REACH_CHARS = 100
_UNIT_CHARS = 20
_UPDATE_REACH = 8
"""Words before a value within which it is said to be new."""
_MAX_VALUES = 4
"""Values of a text that are compared."""
_MIN_TERMS = 2
_MIN_SHARE = 0.6
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_YEAR = re.compile(r"(?:19|20)\d\d")


@dataclass(frozen=True, slots=True)
class Value:
    """A number with its kind, its unit (the term behind it), and the terms of the question close to it.

    `text` is what it was found in. `labels` are the terms close to it that a number names, with the number:
    "room 12". `is_update` tells that the value is said to be another than before.
    """

    text: str
    number: str
    kind: str | None
    unit: str
    terms: frozenset[str]
    labels: frozenset[tuple[str, str]]
    is_update: bool


def read_values(question: Question, text: str) -> list[Value]:
    """Return the first values of a case-folded text that the question asks for and has terms beside."""
    values: list[Value] = []
    for match in _NUMBER.finditer(text):
        kind, unit = _kind_of(text, match)
        if kind not in question.kinds and not (question.counts and unit in question.terms):
            continue
        value = _read_value(question, text, match, kind, unit)
        if len(value.terms) >= _MIN_TERMS and not _YEAR.fullmatch(value.number):
            values.append(value)
            if len(values) == _MAX_VALUES:
                break
    return values


def has_changed(question: Question, older: Sequence[Value], newer: Sequence[Value]) -> bool:
    """Return whether a newer text has another value of what the question asks than an older text."""
    return any(
        _replaces(question, old, new)
        for new in newer
        for old in older
        if len(new.terms & old.terms) >= _MIN_TERMS and new.number not in old.text
    )


def _replaces(question: Question, old: Value, new: Value) -> bool:
    is_of_kind = new.kind is not None and new.kind in question.kinds
    if (new.kind != old.kind) if is_of_kind else (new.unit != old.unit):
        return False
    if _have_other_labels(question, old, new):
        return False
    if new.is_update:
        return True
    if len(new.terms & old.terms) < _MIN_SHARE * len(question.terms):
        return False
    older, newer = read_statement(old.text), read_statement(new.text)
    return not newer.is_event and not near_identical.are_near(older.core, newer.core)


def _have_other_labels(question: Question, old: Value, new: Value) -> bool:
    """Return whether a thing of the question has another number beside each: "room 12", "room 14"."""
    old_labels, new_labels = dict(old.labels), dict(new.labels)
    common = old_labels.keys() & new_labels.keys() & question.terms
    return any(old_labels[name] != new_labels[name] for name in common)


def _kind_of(text: str, match: re.Match[str]) -> tuple[str | None, str]:
    """Return the kind and the unit of a number by the words before and behind it."""
    before = split_words(text[max(0, match.start() - _UNIT_CHARS) : match.start()])
    behind = split_words(text[match.end() : match.end() + _UNIT_CHARS])
    unit = to_term(behind[0]) if behind else ""
    if before and before[-1] in known_words.CURRENCIES:
        return known_words.MONEY, unit
    if before and before[-1] in known_words.MONTHS:
        return known_words.DATE, unit
    return known_words.KIND_OF_UNIT.get(unit), unit


def _read_value(question: Question, text: str, match: re.Match[str], kind: str | None, unit: str) -> Value:
    ahead = split_words(text[max(0, match.start() - _REACH_CHARS) : match.start()])[-_REACH:]
    behind = split_words(text[match.end() : match.end() + _REACH_CHARS])[:_REACH]
    around = [to_term(word) for word in (*ahead, *behind)]
    is_update = not known_words.NEW.isdisjoint(ahead[-_UPDATE_REACH:]) or not known_words.UPDATES.isdisjoint(
        around[max(0, len(ahead) - _UPDATE_REACH) : len(ahead)]
    )
    labels = frozenset(
        (name, number)
        for name, number in pairwise(around)
        if number[0].isdigit() and name in known_words.LABELLED
    )
    return Value(text, match.group(), kind, unit, question.terms.intersection(around), labels, is_update)
