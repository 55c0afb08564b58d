"""What of a text can't be guessed again once it is gone: names, numbers, dates, quotations, code.

Decisions
- Better a word too many than one too few: who merges is asked once more, who lost a name is not.
- A name is a word with a capital that is not at the start of a sentence; at the start any word that is
  not known to begin sentences (`ordinary`). A word of the second kind may come back in any case and
  English inflection, since it may be a verb after all; a name must come back with its capital, so
  that Turkey is not kept by a turkey. Possessives are folded, case endings of other languages are not:
  Ivanov and Ivanova are two people. German nouns count as names.
- Words are compared one by one ("Schmidt, Anna" has Anna Schmidt), quotations, code, paths and
  addresses as they stand.
- A number must come back with its unit; the unit may stand apart ("between 5 and 6 km").
- Scripts without capitals hide their names. Japanese loan words (katakana) and what stands before a
  title or a place's kind are kept; for the rest `fidelity` asks for more of the words.
"""

import re
from dataclasses import dataclass, field
from enum import Enum, auto

from shared.dreams.verification import quantities
from shared.search.text import stemmer


class Kind(Enum):
    """How a specific is looked for."""

    VERBATIM = auto()  # as it stands, whole words
    NAME = auto()  # a word with a capital
    ACRONYM = auto()  # a word of capitals
    SENTENCE_START = auto()  # a word in any case and inflection
    NUMBER = auto()
    DAY = auto()
    TIME = auto()


_NAMES = frozenset({Kind.NAME, Kind.ACRONYM, Kind.SENTENCE_START})
_HARD = frozenset({Kind.VERBATIM, Kind.NAME, Kind.ACRONYM, Kind.NUMBER, Kind.DAY, Kind.TIME})


@dataclass(frozen=True, slots=True)
class Specific:
    """One of them: `key` is what is compared, `shown` what a model is told."""

    kind: Kind
    key: str
    shown: str
    unit: str = ""


@dataclass(slots=True)
class ParsedText:
    """A text, taken apart. Words are case folded; `numbers` holds the units of each value."""

    specifics: dict[Specific, None] = field(default_factory=dict)
    text: str = ""
    words: set[str] = field(default_factory=set)
    stems: set[str] = field(default_factory=set)
    capitals: set[str] = field(default_factory=set)
    acronyms: set[str] = field(default_factory=set)
    numbers: dict[str, set[str]] = field(default_factory=dict)
    days: set[str] = field(default_factory=set)
    times: set[str] = field(default_factory=set)

    def add(self, one: Specific) -> None:
        """Note a specific."""
        self.specifics[one] = None

    def add_number(self, value: str, shown: str, unit: str) -> None:
        """Note a number, which counts as one that is there, too."""
        self.numbers.setdefault(value, set()).add(unit)
        self.add(Specific(Kind.NUMBER, value, shown, unit))

    @property
    def names(self) -> list[str]:
        """The words that are, or may be, names."""
        return [one.key for one in self.specifics if one.kind in _NAMES]

    def missing_in(self, other: "ParsedText") -> list[str]:
        """Return what of this text the other lacks."""
        return [one.shown for one in self.specifics if not other.holds(one)]

    def certain_missing_in(self, other: "ParsedText") -> list[str]:
        """Return what of this text can't come from the other: a mere capital may."""
        hard = [one for one in self.specifics if one.kind in _HARD]
        return [one.shown for one in hard if one.key.casefold() not in other.words and not other.holds(one)]

    def holds(self, one: Specific) -> bool:
        """Tell whether a specific of another text is in this one."""
        match one.kind:
            case Kind.VERBATIM:
                return one.key in self.words or _stands_in(one.key, self.text)
            case Kind.SENTENCE_START:
                return stemmer.stem(one.key) in self.stems
            case Kind.NUMBER:
                return self._has_number(one)
            case Kind.NAME | Kind.ACRONYM | Kind.DAY | Kind.TIME:
                return one.key in self._words_like(one.kind)

    def _words_like(self, kind: Kind) -> set[str]:
        return {
            Kind.NAME: self.capitals,
            Kind.ACRONYM: self.acronyms,
            Kind.DAY: self.days,
            Kind.TIME: self.times,
        }[kind]

    def _has_number(self, one: Specific) -> bool:
        units = self.numbers.get(one.key, set())
        if one.unit in units:
            return True
        if not one.unit:
            return bool(units)
        return "" in units and one.unit in {quantities.named_unit(word) for word in self.words}


def _stands_in(key: str, text: str) -> bool:
    """Tell whether `key` stands in a text as a whole: not as a part of a longer word, number or path."""
    start = text.find(key)
    while start >= 0:
        end = start + len(key)
        before, after = text[max(0, start - 2) : start], text[end : end + 2]
        if not (_goes_on(before[::-1], key[0]) or _goes_on(after, key[-1])):
            return True
        start = text.find(key, start + 1)
    return False


def _goes_on(neighbours: str, edge: str) -> bool:
    """Tell whether what is next to an edge, nearest first, belongs to the same word."""
    if not neighbours or UNSPACED.match(edge) or not (edge.isalnum() or edge in _WITHIN):
        return False
    if neighbours[0].isalnum() or neighbours[0] == "_":
        return True
    return neighbours[0] in _WITHIN and neighbours[1:].isalnum()


UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff]+"
)
"""A run of a script that puts no spaces between words."""
_WITHIN = frozenset("/.-_?=&@:+'\\#")
