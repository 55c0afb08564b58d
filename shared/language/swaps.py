"""Find what a text says of the wrong one: "Kiel closes at 18:30" where a source says so of Cologne.

Each name and number of the source is kept then, so the other checks see no difference. Two are compared:

- What stands in one clause with a number, a day or a time. A text may not put a name there in the place of
  another one and leave out all that the sources have there for it.
- Two names with the same words between them stand in the same order: "Kiel is bigger than Cologne", "Ada
  manages Ben". With other words ("smaller than", "is managed by") they may change places, and where the
  words say that both are meant alike ("with", "married to").

A clause that is not understood joins nothing: other checks are there to refuse what is uncertain.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from shared.language.specifics import Kind, ParsedText
from shared.language.text_parser import parse_text
from shared.search.text import stemmer, tokenizer

_SENTENCE_END = re.compile(r"[.!?;\n\u2026](?=\s|$)|[\u3002\uff01\uff1f]")
_SEPARATOR = re.compile(
    r"(?:,|:|\s[\u2013\u2014-])(?=\s)"
    r"|\s(?:and|or|but|while|whereas|und|oder|aber|während|et|ou|mais|tandis que|y|o|pero|mientras|e|mas"
    r"|enquanto|ma|mentre|\u0438|\u0438\u043b\u0438|\u0430|\u043d\u043e)\s",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+")
_MUTUAL = frozenset(
    {"with", "mit", "avec", "con", "com", "\u0441", "near", "friend", "marry"}
    | {"married", "verheiratet", "marié", "casado", "sposato"}
)
_BEFORE = "so"
"""A word before a part of a sentence, so that the part does not count as its beginning."""
_QUANTITIES = frozenset({Kind.NUMBER, Kind.DAY, Kind.TIME})

Name = frozenset[str]
"""The words of a name. Two names are the same if they share a word: "Ada", "Ada Byron"."""


Quantity = tuple[Kind, str]
"""The kind and the key of a number, a day or a time."""


@dataclass(frozen=True, slots=True)
class Clause:
    """The names of a clause with the words between each and the next, and its quantities."""

    names: tuple[Name, ...]
    between: tuple[tuple[str, ...], ...]
    quantities: frozenset[Quantity]

    @property
    def name_words(self) -> frozenset[str]:
        """The words of all names."""
        return frozenset[str]().union(*self.names)


@dataclass(frozen=True, slots=True)
class _Seen:
    """Whether a clause has a name and a quantity."""

    name: bool = False
    quantity: bool = False

    @classmethod
    def in_clause(cls, text: str) -> "_Seen":
        clause = _parse_clause(text)
        return cls(bool(clause.names), bool(clause.quantities))

    @property
    def is_full(self) -> bool:
        return self.name and self.quantity

    def __or__(self, other: "_Seen") -> "_Seen":
        return _Seen(self.name or other.name, self.quantity or other.quantity)


@dataclass(frozen=True, slots=True)
class _Order:
    """Two names and the words between them."""

    first: Name
    words: tuple[str, ...]
    second: Name

    @property
    def reversed(self) -> "_Order":
        return _Order(self.second, self.words, self.first)

    def is_same(self, other: "_Order") -> bool:
        names = ((self.first, other.first), (self.second, other.second))
        return self.words == other.words and not any(
            name.isdisjoint(other_name) for name, other_name in names
        )


def swapped_words(text: str, sources: Sequence[str]) -> list[str]:
    """Return the names and quantities that a text joins otherwise than its sources."""
    return swapped_in_clauses(text, [clause for source in sources for clause in read_clauses(source)])


def swapped_in_clauses(text: str, said: Sequence[Clause]) -> list[str]:
    """Return the names and quantities that a text joins otherwise than the clauses of its sources."""
    written = read_clauses(text)
    return list(dict.fromkeys([*_wrong_quantities(written, said), *_wrong_orders(written, said)]))


def _wrong_quantities(written: Sequence[Clause], said: Sequence[Clause]) -> Iterator[str]:
    names_said = _names_by_quantity(said)
    quantities_said, quantities_written = _quantities_by_name(said), _quantities_by_name(written)
    kept = {word for word, of_word in quantities_said.items() if of_word & quantities_written[word]}
    for clause in written:
        for quantity in clause.quantities:
            meant = names_said[quantity]
            others = (clause.name_words - kept) & quantities_said.keys()
            if others and meant - clause.name_words:
                yield from (*sorted(others), quantity[1])


def _names_by_quantity(clauses: Sequence[Clause]) -> defaultdict[Quantity, set[str]]:
    names: defaultdict[Quantity, set[str]] = defaultdict(set)
    for clause in clauses:
        for quantity in clause.quantities:
            names[quantity] |= clause.name_words
    return names


def _quantities_by_name(clauses: Sequence[Clause]) -> defaultdict[str, set[Quantity]]:
    quantities: defaultdict[str, set[Quantity]] = defaultdict(set)
    for clause in clauses:
        for word in clause.name_words if clause.quantities else ():
            quantities[word] |= clause.quantities
    return quantities


def _wrong_orders(written: Sequence[Clause], said: Sequence[Clause]) -> Iterator[str]:
    said_orders = [order for clause in said for order in _orders(clause)]
    for order in (order for clause in written for order in _orders(clause)):
        is_reversed = any(order.is_same(other.reversed) for other in said_orders)
        if is_reversed and not any(order.is_same(other) for other in said_orders):
            yield from (*sorted(order.first), *sorted(order.second))


def _orders(clause: Clause) -> Iterator[_Order]:
    for (first, second), words in zip(pairwise(clause.names), clause.between, strict=False):
        if _MUTUAL.isdisjoint(words):
            yield _Order(first, words, second)


def read_clauses(text: str) -> list[Clause]:
    """Return the clauses of a text."""
    sentences = _SENTENCE_END.split(text)
    return [_parse_clause(clause) for sentence in sentences for clause in _split_sentence(sentence)]


def _split_sentence(sentence: str) -> Iterator[str]:
    """Yield the clauses of a sentence. A part without a name belongs to the clause before it.

    A part begins a new clause if it has a name of its own, and the clause before has a name and a quantity.
    Each part is read for itself: a list of thousands of things is one long clause.
    """
    clause, so_far = [""], _Seen()
    for part in _SEPARATOR.split(sentence):
        if so_far.is_full and _parse_clause(part).names:
            yield ", ".join(clause)
            clause, so_far = [part], _Seen.in_clause(part)
        else:
            clause.append(part)
            so_far = so_far if so_far.is_full else so_far | _Seen.in_clause(f"{_BEFORE}, {part}")
    yield ", ".join(clause)


def _parse_clause(text: str) -> Clause:
    parsed = parse_text(text)
    name_words = {part for name in _names(parsed) for part in _WORD.findall(name)}
    names: list[Name] = []
    between: list[tuple[str, ...]] = []
    words = [word.casefold() for word in _WORD.findall(text)]
    for is_name, group in groupby(words, key=name_words.__contains__):
        if is_name:
            names.append(frozenset(group))
        elif names:
            between.append(tuple(stemmer.stem(word) for word in group))
    quantities = frozenset(
        (specific.kind, specific.key) for specific in parsed.specifics if specific.kind in _QUANTITIES
    )
    return Clause(tuple(names), tuple(between), quantities)


def _names(parsed: ParsedText) -> Iterator[str]:
    """Yield the names of a text, and the identifiers in it: "server B2"."""
    yield from (name for name in parsed.names if name not in tokenizer.QUESTION_WORDS)
    yield from (specific.key for specific in parsed.specifics if specific.kind is Kind.VERBATIM)
