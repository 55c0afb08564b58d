"""The built-in re-ranker: choose passages that are relevant and don't say the same.

Maximal marginal relevance (Carbonell and Goldstein 1998): the next passage is the one with the highest
RELEVANCE_WEIGHT · relevance - (1 - RELEVANCE_WEIGHT) · (greatest likeness to one that was chosen). Relevance
is the score divided by the highest, likeness the share of all words of two passages that both have. Chunks
overlap and documents repeat each other, so the best ten by score alone often hold the same sentence.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.search.text.tokenizer import tokenize

RELEVANCE_WEIGHT = 0.7


@dataclass(frozen=True, slots=True)
class ScoredText:
    """A text with its relevance, which is above 0."""

    id: str
    text: str
    score: float


def choose(candidates: Sequence[ScoredText], limit: int) -> list[ScoredText]:
    """Return at most `limit` of the candidates, those with the highest scores first."""
    if not candidates:
        return []
    highest = max(candidate.score for candidate in candidates)
    words = {candidate.id: frozenset(tokenize(candidate.text)) for candidate in candidates}
    likeness = dict.fromkeys(words, 0.0)  # of each to those that were chosen
    remaining, chosen = list(candidates), list[ScoredText]()
    while remaining and len(chosen) < limit:
        best = max(remaining, key=lambda candidate: _gain(candidate.score / highest, likeness[candidate.id]))
        remaining.remove(best)
        chosen.append(best)
        for candidate in remaining:
            likeness[candidate.id] = max(
                likeness[candidate.id], _likeness(words[best.id], words[candidate.id])
            )
    return sorted(chosen, key=lambda candidate: -candidate.score)


def _gain(relevance: float, likeness: float) -> float:
    return RELEVANCE_WEIGHT * relevance - (1 - RELEVANCE_WEIGHT) * likeness


def _likeness(first: frozenset[str], second: frozenset[str]) -> float:
    return len(first & second) / len(first | second) if first or second else 1.0
