"""Check that a merged text keeps everything of its sources that can't be guessed again.

There are five checks, the most certain one first. The names, numbers and quotations of the sources must be
kept (`specifics`), and in scripts without capitals each word (`unmarked_words`). Some of each source's
wording must be kept. No negation may be added or lost (`negation`). Nothing may be said of one name that the
sources say of another (`swaps`). The text must have no name or number that no source has. The checks err on
the side of refusing, because a refused merge costs a second attempt, while a wrong one loses a fact.

The time of an event must be kept too. It is in `occurred_at`, and a merged memory has only one of them. If
the sources happened on different days, the text must name each day (as 2026-05-01).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from shared.dreams.verification.rejection import RejectionCode
from shared.language import common_words, quantities, unmarked_words
from shared.language.specifics import ParsedText
from shared.language.text_parser import parse_text
from shared.memory.longterm.memory import Memory
from shared.search.text import tokenizer

_MAX_WORDS = 30
_PREFIX_LENGTH = 5
"""The first letters that two forms of one word roughly share in languages that inflect."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a merged text, and the words concerned: those lost or those added."""

    code: RejectionCode
    detail: str
    words: tuple[str, ...]


def lost_content(content: str, sources: Sequence[Memory]) -> Fault | None:
    """Return what a text lost of its sources, or None. What it adds doesn't matter."""
    parsed = parse_text(content)
    parsed_sources = [(memory.content, parse_text(memory.content)) for memory in sources]
    lost_words = [
        *_missing_days(parsed, sources),
        *(word for _, source in parsed_sources for word in source.missing_in(parsed)),
        *(word for text, _ in parsed_sources for word in unmarked_words.lost_words(text, content)),
    ]
    if lost_words:
        return _fault(RejectionCode.LOSES_SPECIFICS, "the text lost these of its sources", lost_words)
    terms = tokenizer.tokenize(content)
    present_terms = frozenset([*terms, *(term[:_PREFIX_LENGTH] for term in terms)])
    if missing_words := [
        word for text, source in parsed_sources for word in _missing_gist(text, source, present_terms)
    ]:
        return _fault(
            RejectionCode.LOSES_GIST, "of a source hardly a word is left; these are gone", missing_words
        )
    return None


def _fault(code: RejectionCode, detail: str, words: Iterable[str]) -> Fault:
    return Fault(code, detail, tuple(dict.fromkeys(words))[:_MAX_WORDS])


def _missing_days(parsed: ParsedText, sources: Sequence[Memory]) -> list[str]:
    days = sorted({_utc_day(memory.occurred_at) for memory in sources if memory.occurred_at})
    return [day for day in days if day not in parsed.days] if len(days) > 1 else []


def _utc_day(moment: datetime) -> str:
    return moment.astimezone(UTC).date().isoformat()


def _missing_gist(source_text: str, source: ParsedText, present_terms: frozenset[str]) -> list[str]:
    """Return the content words of a source that are missing, if more are than a rewording would replace.

    Content words are all words but names, numbers and stop words. A quarter of them must be left; half in
    scripts without capitals, where names can't be distinguished from other words. The specifics are all
    present at this point, and three of them stand for one content word: an address is not lost if only the
    "moved to" before it is.
    """
    names = {term for name in source.names for term in tokenizer.tokenize(name)}
    names |= common_words.GENERIC_SUBJECTS
    content_words = [
        term for term in tokenizer.tokenize_query(source_text) if term not in names and not _is_quantity(term)
    ]
    missing_words = [
        term for term in content_words if present_terms.isdisjoint((term, term[:_PREFIX_LENGTH]))
    ]
    required = sum(0.25 if term.upper() != term.lower() else 0.5 for term in content_words)
    present_count = len(content_words) - len(missing_words)
    return missing_words if present_count < required - len(source.specifics) // 3 else []


def _is_quantity(term: str) -> bool:
    return quantities.is_measure(term) or any(character.isdecimal() for character in term)
