"""Find cues in a query: who is meant to have spoken, when, and what kind of answer is expected.

The cues are English, with the first person of a few more languages. A cue that is not recognised does
no harm, because the features that use cues only add to a score.
"""

import re
from dataclasses import dataclass
from datetime import datetime

from shared.search.ranking.date_ranges import DateRange, find_date_ranges
from shared.search.text.tokenizer import MAX_QUERY_CHARS, query_phrases

_NAME = re.compile(r"[^\W\d_]+")
_FIRST_PERSON = re.compile(
    r"\b(?:i|me|my|mine|myself|we|us|our|ours|ich|mich|mir|meine?[mnrs]?|wir|je|mes|moi|nous|yo|mis"
    r"|я|мой|моя|мои|мне|меня)\b|[我私僕俺]",
    re.IGNORECASE,
)
_ABOUT_AGENT = re.compile(
    r"\b(?:did|have|had|were) you\b"
    r"|\byou (?:have |had )?(?:recommend|suggest|advise|propose|tell|told|explain)",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"\bwhen\b|\bhow long\b|\b(?:what|which) (?:date|day|week|month|year|time)\b", re.IGNORECASE
)
_HOW_MANY = re.compile(r"\bhow (?:many|much|old|often|long|far)\b", re.IGNORECASE)
# A word after another word of the same sentence; the first word of a sentence is capitalised anyway.
_LATER_WORD = re.compile(r"(?<=[^\s.!?:…] )[\"'(\u2018\u201c]?([^\W\d_][\w-]*)")
_CALENDAR_WORDS = """
    monday tuesday wednesday thursday friday saturday sunday
    january february march april may june july august september october november december
"""
_CALENDAR = frozenset(_CALENDAR_WORDS.split())


@dataclass(frozen=True, slots=True)
class QueryCues:
    """The cues of a query.

    `is_about_asker` tells that it is about the person who asks, not about what the agent answered.
    """

    names: frozenset[str]
    is_about_asker: bool
    wants_time: bool
    wants_number: bool
    date_ranges: tuple[DateRange, ...]
    phrases: tuple[str, ...]


def analyze(query: str, now: datetime | None = None) -> QueryCues:
    """Return the cues of a query; relative dates such as "yesterday" are understood only with `now`."""
    query = query[:MAX_QUERY_CHARS]
    return QueryCues(
        names=frozenset(_NAME.findall(query.casefold())),
        is_about_asker=bool(_FIRST_PERSON.search(query)) and not _ABOUT_AGENT.search(query),
        wants_time=bool(_WHEN.search(query)),
        wants_number=bool(_HOW_MANY.search(query)),
        date_ranges=tuple(find_date_ranges(query, now)),
        phrases=tuple(query_phrases(query)),
    )


def capitalized_words(query: str) -> list[str]:
    """Return the words that name someone or something: with a capital inside a sentence, and no date.

    In German these are all nouns. A query in capitals has nothing but such words.
    """
    words = _LATER_WORD.findall(query[:MAX_QUERY_CHARS])
    return [word for word in words if word[0].isupper() and word.casefold() not in _CALENDAR]
