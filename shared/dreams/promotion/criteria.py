"""The four criteria of a promotion: a pure function for each, and the rule that joins them.

A snippet is promoted if somebody asked for it, or if it was written three times, or if it is both salient
and surprising. Surprising alone is not enough, because in a new scope everything is; salient alone isn't
either, because what is known already need not be stored again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from shared.search.text.tokenizer import tokenize_query

MIN_COUNT = 3
"""Writes from which a snippet counts as frequent."""
MIN_SALIENCE = 0.7
"""Salience, as a model judges it, from which a snippet may be promoted."""
MIN_SURPRISAL = 0.5
"""Surprisal from which a snippet may be promoted: no known text has more than half of its words."""
NOT_JUDGED = "not judged: there is no language model"


class Criterion(StrEnum):
    """What speaks for a promotion."""

    SALIENCE = "salience"
    SURPRISAL = "surprisal"
    FREQUENCY = "frequency"
    EXPLICIT = "explicit"


@dataclass(frozen=True, slots=True)
class Score:
    """The value of one criterion, None if it was not judged, whether it is met, and why."""

    value: float | None
    is_met: bool
    reason: str

    def to_json(self) -> dict[str, object]:
        """Return the score as the API does."""
        return {"value": self.value, "met": self.is_met, "reason": self.reason}


Scores = Mapping[Criterion, Score]


def salience(value: float | None, reason: str) -> Score:
    """Score how much a snippet matters beyond its session, from 0 to 1, as a model judges it.

    Without a judgement the value is None, and the criterion is not met.
    """
    return Score(value, value is not None and value >= MIN_SALIENCE, reason)


def surprisal(text: str, known_texts: Iterable[frozenset[str]]) -> Score:
    """Score how new a snippet is to what its scope knows, from 0 to 1.

    The value is 1 minus the largest share of its distinct content words that any single known text has. A
    known text is given as its words (`tokenizer.tokenize`).
    """
    words = set(tokenize_query(text))
    known = max((len(words & known_text) for known_text in known_texts), default=0)
    value = round(1 - known / len(words), 3) if words else 0.0
    reason = f"of its {len(words)} words, one known text has {known}" if known else "nothing like it is known"
    return Score(value, value >= MIN_SURPRISAL, reason)


def frequency(count: int) -> Score:
    """Score how often a snippet was written."""
    return Score(float(count), count >= MIN_COUNT, f"written {count} times, of {MIN_COUNT} that are needed")


def explicit(reason: str | None) -> Score:
    """Score whether somebody asked for the promotion; None says that nobody did."""
    return Score(float(reason is not None), reason is not None, reason or "nobody asked for it")


def qualifies(scores: Scores) -> bool:
    """Return whether a snippet with these scores is promoted."""
    is_new_and_salient = scores[Criterion.SALIENCE].is_met and scores[Criterion.SURPRISAL].is_met
    return scores[Criterion.EXPLICIT].is_met or scores[Criterion.FREQUENCY].is_met or is_new_and_salient
