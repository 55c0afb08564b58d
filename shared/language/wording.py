"""Compare a statement with the clauses that say it: how much of either is in the other.

Who says something anew uses nearly all words of the clause and few others. Words are compared by their stem,
or by their first letters where the language inflects; scripts without spaces by pairs of characters.
Grammar and the words for the user don't count.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from shared.language import common_words, quantities
from shared.search.text import stemmer, tokenizer

_PREFIX_LENGTH = 3
_SURE_LENGTH = 5
_WORD = re.compile(r"[^\W\d_]+")
_MAX_CLAUSES = 5
_SENTENCE = re.compile(
    r"(?<!\bdr)(?<!\bmr)(?<!\bmrs)(?<!\bms)(?<!\bprof)(?<!\bst)(?<!\bm)(?<=[.!?\n\u2026])\s+"
    "|(?<=[\u3002\uff01\uff1f])|\n+",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[;:,\u3001\uff0c\uff1b]\s*(?!\d)|\s[\u2013\u2014-]\s")
_BACKWARD_WEIGHT = 0.6


@dataclass(frozen=True, slots=True)
class Span:
    """Neighbouring clauses of a sentence of a text, and that sentence."""

    text: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Match:
    """A statement and the clauses that come nearest to it.

    `covered` is the share of the statement's words that the clauses have, `used` the share of the clauses'
    words that the statement has; both from 0 to 1.
    """

    span: Span
    covered: float
    used: float


def content_stems(text: str) -> frozenset[str]:
    """Return the stems of a text without grammar, digits, light verbs and words for the user.

    Of a script without spaces they are pairs of characters.
    """
    plain = tokenizer.normalize(text)
    words = (word for word in _WORD.findall(plain) if word not in _SAYS_NOTHING and len(word) > 1)
    return frozenset(stem for word in words for stem in _stems(word))


def _stems(word: str) -> list[str]:
    if quantities.spelled(word):
        return []
    return tokenizer.tokenize_query(word) if tokenizer.is_unspaced(word) else [stemmer.stem(word)]


def share(stems: frozenset[str], others: frozenset[str]) -> float:
    """Return the share of some stems that are among others, in the same or another inflection; of none, 1."""
    if not stems:
        return 1.0
    by_beginning: dict[str, list[str]] = {}
    for other in others:
        by_beginning.setdefault(other[:_PREFIX_LENGTH], []).append(other)

    def is_found(stem: str) -> bool:
        candidates = by_beginning.get(stem[:_PREFIX_LENGTH], ())
        return stem in others or any(_is_inflected(stem, candidate) for candidate in candidates)

    return sum(map(is_found, stems)) / len(stems)


def _is_inflected(stem: str, other: str) -> bool:
    """Tell whether two words may be forms of one: they differ after the fifth letter, or in the last."""
    if tokenizer.is_unspaced(stem):
        return False
    length = max(_PREFIX_LENGTH, min(_SURE_LENGTH, len(stem) - 1, len(other) - 1))
    return stem[:length] == other[:length]


def spans(text: str) -> Iterator[Span]:
    """Yield each run of up to five neighbouring clauses of a sentence."""
    for sentence in _SENTENCE.split(text):
        clauses = [clause for clause in _CLAUSE.split(sentence) if clause.strip()]
        for start in range(len(clauses)):
            for end in range(start + 1, min(start + _MAX_CLAUSES, len(clauses)) + 1):
                yield Span(", ".join(clauses[start:end]), sentence)


def nearest(
    statement: str, said: Iterable[tuple[Span, frozenset[str]]], allowed: frozenset[str]
) -> Match | None:
    """Return the clauses that come nearest to a statement, which may have the `allowed` stems, too.

    `said` are runs of clauses with their stems.
    """
    stems = content_stems(statement)
    matches = (
        Match(span, share(stems, span_stems | allowed), share(span_stems, stems))
        for span, span_stems in said
        if span_stems
    )
    return max(matches, key=lambda match: match.covered + _BACKWARD_WEIGHT * match.used, default=None)


_LIGHT = """
live lives living work works working need needs want wants get gets go goes take takes come comes name named
call called year years old person people family own owns give gives
wohnt lebt arbeitet braucht bekommt geht nimmt kommt heißt jahre alt person familie
habite vit travaille besoin prend vient va appelle an ans personne famille possède
vive trabaja necesita recibe va toma viene llama años persona familia
abita lavora bisogno prende viene chiama anni persona famiglia
mora trabalha precisa recebe vai toma vem chama anos pessoa família
"""
"""Words that make a sentence of a fragment, and say little by themselves."""
_SAYS_NOTHING = frozenset(
    tokenizer.normalize(word)
    for word in (*common_words.grammar(), *common_words.USER_WORDS, "user", "users", *_LIGHT.split())
)
