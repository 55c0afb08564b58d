"""Find what users ask for in several sessions: pure functions over their first turns.

A model is asked about these alone. So a scope in which nothing recurs costs no call, and a request that came
up once makes no skill.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from shared.conversation.turns.turn import Turn
from shared.dreams.verification import similarity
from shared.search.text.tokenizer import QUESTION_WORDS, tokenize

MIN_SESSIONS = 2
MAX_TERMS = 15
_MIN_TERM_LENGTH = 4
_MIN_SHARED_TERMS = 2


@dataclass(frozen=True, slots=True)
class RecurringRequest:
    """Requests of several sessions that are alike, the first of each."""

    turns: tuple[Turn, ...]

    @property
    def session_ids(self) -> list[str]:
        """The sessions in which it came up."""
        return [turn.session_id for turn in self.turns]


def find_recurring(requests: Sequence[Turn]) -> list[RecurringRequest]:
    """Return the requests that came up in at least two sessions; each belongs to the first one like it."""
    groups: list[list[Turn]] = []
    for request in requests:
        group = next((known for known in groups if _are_alike(known[0], request)), None)
        if group is None:
            groups.append([request])
        else:
            group.append(request)
    return [RecurringRequest(tuple(group)) for group in groups if len(group) >= MIN_SESSIONS]


def recurring_terms(requests: Sequence[Turn]) -> list[str]:
    """Return the terms of at least four characters that most sessions share, at least two."""
    counts = Counter(term for request in requests for term in _terms(request))
    return [term for term, count in counts.most_common(MAX_TERMS) if count >= MIN_SESSIONS]


def _are_alike(first: Turn, second: Turn) -> bool:
    words = similarity.words_of(first.content), similarity.words_of(second.content)
    return similarity.words_are_similar(*words) or len(_terms(first) & _terms(second)) >= _MIN_SHARED_TERMS


def _terms(turn: Turn) -> set[str]:
    return {
        term
        for term in tokenize(turn.content)
        if len(term) >= _MIN_TERM_LENGTH and " " not in term and term not in QUESTION_WORDS
    }
