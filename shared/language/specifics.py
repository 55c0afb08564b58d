"""The specifics of a text, which can't be guessed again once they are lost: names, numbers, dates, code.

- Too many specifics are better than too few: a refused merge is tried once more, a lost name is lost.
- A name is a capitalised word that is not at the start of a sentence. At the start, every word counts that
  is not known to begin sentences (`common_words`). Such a word may come back in any case and English
  inflection, because it may be a verb. A name must come back with its capital, so that "turkey" does not
  stand for Turkey. Possessive endings are ignored, case endings of other languages are not: Ivanov and
  Ivanova are two people. German nouns count as names.
- Words are compared one by one ("Schmidt, Anna" contains Anna Schmidt); quotations, code, paths and
  addresses are compared as they are written.
- A number must come back with its unit, which may stand apart ("between 5 and 6 km").
- Names can't be recognised in scripts without capitals. Japanese loan words (katakana) and words before a
  title or the type of a place are kept; `fidelity` requires more of the other words.
"""

import re
from dataclasses import dataclass, field
from enum import Enum, auto

from shared.language import quantities
from shared.search.text import stemmer


class Kind(Enum):
    """How a specific is searched for in a text."""

    VERBATIM = auto()  # as it is written, whole words
    KEY = auto()  # as it is written, capitals too
    NAME = auto()  # a capitalised word
    ACRONYM = auto()  # a word in capitals
    SENTENCE_START = auto()  # a word at the start of a sentence, in any case and inflection
    NUMBER = auto()
    DAY = auto()
    TIME = auto()


_NAME_KINDS = frozenset({Kind.NAME, Kind.ACRONYM, Kind.SENTENCE_START})
_UNSAID_UNITS = frozenset({"", "year"})
"""What may be said of a number that has no unit in another text: "Tim (7)" is 7 years old."""
_CERTAIN_KINDS = frozenset(
    {Kind.VERBATIM, Kind.KEY, Kind.NAME, Kind.ACRONYM, Kind.NUMBER, Kind.DAY, Kind.TIME}
)


@dataclass(frozen=True, slots=True)
class Specific:
    """A specific: `key` is compared, `wording` is named to the model."""

    kind: Kind
    key: str
    wording: str
    unit: str = ""


@dataclass(slots=True)
class ParsedText:
    """The parts of a text. Words are case folded, pieces as written; `numbers` has the units of a value."""

    specifics: dict[Specific, None] = field(default_factory=dict)
    text: str = ""
    words: set[str] = field(default_factory=set)
    pieces: set[str] = field(default_factory=set)
    stems: set[str] = field(default_factory=set)
    capitals: set[str] = field(default_factory=set)
    acronyms: set[str] = field(default_factory=set)
    numbers: dict[str, set[str]] = field(default_factory=dict)
    days: set[str] = field(default_factory=set)
    times: set[str] = field(default_factory=set)

    def add(self, specific: Specific) -> None:
        """Add a specific."""
        self.specifics[specific] = None

    def add_number(self, value: str, wording: str, unit: str) -> None:
        """Add a number to the specifics and to the numbers that the text contains."""
        self.numbers.setdefault(value, set()).add(unit)
        self.add(Specific(Kind.NUMBER, value, wording, unit))

    @property
    def names(self) -> list[str]:
        """The words that are or may be names."""
        return [specific.key for specific in self.specifics if specific.kind in _NAME_KINDS]

    def missing_in(self, other: "ParsedText") -> list[str]:
        """Return the wordings of the specifics that the other text lacks."""
        return [specific.wording for specific in self.specifics if not other.contains(specific)]

    def certain_missing_in(self, other: "ParsedText") -> list[str]:
        """Return the wordings of the specifics that can't come from the other text.

        A word at the start of a sentence never counts, and a name not if the other text has it in any case.
        A number counts if the other text has it with another unit.
        """
        return [
            specific.wording
            for specific in self.specifics
            if specific.kind in _CERTAIN_KINDS
            and (specific.unit not in _UNSAID_UNITS or specific.key.casefold() not in other.words)
            and not other.contains(specific)
        ]

    def contains(self, specific: Specific) -> bool:
        """Tell whether this text contains a specific of another text."""
        match specific.kind:
            case Kind.VERBATIM:
                return specific.key in self.words or _is_whole_part(specific.key, self.text)
            case Kind.KEY:
                return specific.key in self.pieces
            case Kind.SENTENCE_START:
                return stemmer.stem(specific.key) in self.stems
            case Kind.NUMBER:
                return self._has_number(specific)
            case Kind.NAME | Kind.ACRONYM | Kind.DAY | Kind.TIME:
                return specific.key in self._keys_of(specific.kind)

    def _keys_of(self, kind: Kind) -> set[str]:
        return {
            Kind.NAME: self.capitals,
            Kind.ACRONYM: self.acronyms,
            Kind.DAY: self.days,
            Kind.TIME: self.times,
        }[kind]

    def _has_number(self, number: Specific) -> bool:
        units = self.numbers.get(number.key, set())
        if number.unit in units:
            return True
        if not number.unit:
            return bool(units)
        return "" in units and number.unit in {quantities.named_unit(word) for word in self.words}


def _is_whole_part(key: str, text: str) -> bool:
    """Tell whether a text contains `key` as a whole, and not as part of a longer word, number or path."""
    start = text.find(key)
    while start >= 0:
        end = start + len(key)
        before, after = text[max(0, start - 2) : start], text[end : end + 2]
        if not (_continues(before[::-1], key[0]) or _continues(after, key[-1])):
            return True
        start = text.find(key, start + 1)
    return False


def _continues(neighbours: str, edge: str) -> bool:
    """Tell whether the characters next to the edge of a key, nearest first, belong to the same word."""
    if not neighbours or UNSPACED.match(edge) or not (edge.isalnum() or edge in _INNER_CHARACTERS):
        return False
    if neighbours[0].isalnum() or neighbours[0] == "_":
        return True
    return neighbours[0] in _INNER_CHARACTERS and neighbours[1:].isalnum()


UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff]+"
)
"""A sequence of characters of a script that has no spaces between words."""
_INNER_CHARACTERS = frozenset("/.-_?=&@:+'\\#")
