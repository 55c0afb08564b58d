"""What a question asks for, as far as the comparison of statements needs it."""

import re
from dataclasses import dataclass

from shared.search.ranking.statement_words import DATE, MONEY, PERCENT, SPAN, TIME_OF_DAY
from shared.search.text.tokenizer import MAX_QUERY_CHARS, tokenize_query

_YES_NO = re.compile(
    r"\W*(?:is|are|am|was|were|do|does|did|has|have|can|will|may|must|should|ist|sind|hat|haben|isst"
    r"|est-ce|es|è|é)\b"
)
_ASKS = re.compile(
    r"\W*(?:what|which|how|when|until|at what|by when|in which|wie|wann|welche|cu|qu|de combien|combien|como"
    r"|quando|qual)"
)
# Such a question is about several statements, and needs all of them.
_SEVERAL = re.compile(
    r"\b(?:between|passed|differen(?:t|ce)|mention(?:ed)?|did i (?:say|tell)|all|each|both|list|order"
    r"|summar\w*|compare\w*|overall)\b"
)
_COUNT = re.compile(r"\bhow many\b|\bwie viele\b|\bcuánt[oa]s\b|\bcombien d[e']|\bquant[ie]\b|\bquant[oa]s\b")
_KINDS = {
    SPAN: re.compile(r"\bhow (?:long|old|often|fast)\b|\btime\b"),
    DATE: re.compile(
        r"\b(?:when|what date|which date|what day|which day|what time|deadline|until|due)\b|\bwann\b"
    ),
    MONEY: re.compile(r"\bhow much\b|\b(?:budget|prices?|costs?|rent|salary|fees?|goal|spend)\b"),
    PERCENT: re.compile(r"\b(?:rate|percent(?:age)?|accuracy|share|tax|goal)\b"),
}
_UNITS = re.compile(r"\bhow much\b|\bgoal\b|\bbudget\b")


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its terms, and which values it asks for: kinds of them, or what has a unit of its terms."""

    terms: frozenset[str]
    is_yes_no: bool
    kinds: frozenset[str]
    counts: bool

    @property
    def asks_for_value(self) -> bool:
        """Whether a number, a date or a time answers it."""
        return self.counts or bool(self.kinds)


def read_question(query: str) -> Question:
    """Return what a query asks for."""
    text = query[:MAX_QUERY_CHARS].casefold()
    terms = frozenset(tokenize_query(query))
    is_yes_no = bool(_YES_NO.match(text))
    if not _ASKS.match(text) or _SEVERAL.search(text):
        return Question(terms, is_yes_no, frozenset(), counts=False)
    if _COUNT.search(text):
        return Question(terms, is_yes_no, frozenset(), counts=True)
    kinds = {kind for kind, pattern in _KINDS.items() if pattern.search(text)}
    if DATE in kinds:
        kinds.add(TIME_OF_DAY)
    return Question(terms, is_yes_no, frozenset(kinds), counts=bool(_UNITS.search(text)))
