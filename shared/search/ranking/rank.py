"""Rank candidates. The functions are pure and the same for all kinds of records."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from shared.foundation import errors
from shared.search.floor import Floor
from shared.search.ranking import fusion, relevance
from shared.search.ranking.blend import blend
from shared.search.ranking.candidate import Candidate, ScoredCandidate

DEFAULT_STRATEGY = "blend"
STRATEGIES = (DEFAULT_STRATEGY, *fusion.FUSION_STRATEGIES)


def rank(
    query: str,
    candidates: Sequence[Candidate],
    strategy: str = DEFAULT_STRATEGY,
    min_similarity: float | None = None,
    now: datetime | None = None,
    floor: Floor | None = None,
) -> list[ScoredCandidate]:
    """Return the candidates with a score above 0, best first; equal scores keep the order of `candidates`.

    If no candidate is relevant by the `floor`, none is returned. `min_similarity` replaces the floor: a
    cosine below it is ignored, and nothing else is a condition. The strategy `mean` has a minimum of its
    own. The score is multiplied by 0.5 + 0.5 · importance. `ScoredCandidate.scores` has every part of the
    score. Raises errors.Invalid for an unknown strategy.
    """
    if strategy not in STRATEGIES:
        raise errors.Invalid("strategy", f"must be one of {', '.join(STRATEGIES)}")
    if min_similarity is not None or strategy == "mean":
        floor = None
    if floor is not None and not relevance.is_any_relevant(query, candidates, floor):
        return []
    candidates = _ignore_low_cosines(candidates, _min_cosine(strategy, min_similarity))
    fuse = fusion.FUSION_STRATEGIES.get(strategy)
    columns = fuse(candidates) if fuse else blend(query, candidates, now)
    boosts = [0.5 + 0.5 * min(max(candidate.importance, 0.0), 1.0) for candidate in candidates]
    columns["importance"] = boosts
    columns["score"] = [score * boost for score, boost in zip(columns["score"], boosts, strict=True)]
    return _best_first(candidates, columns, floor)


def top(
    ranked: Sequence[ScoredCandidate], limit: int, reserved: Collection[str] = ()
) -> list[ScoredCandidate]:
    """Return the best `limit` candidates.

    If no id of `reserved` is among them, the best candidate with such an id replaces the last one.
    """
    best = list(ranked[:limit])
    if not best or any(s.id in reserved for s in best):
        return best
    best_reserved = next((s for s in ranked[limit:] if s.id in reserved), None)
    return [*best[:-1], best_reserved] if best_reserved else best


def _min_cosine(strategy: str, min_similarity: float | None) -> float | None:
    if min_similarity is None and strategy == "mean":
        return fusion.MEAN_MIN_COSINE
    return min_similarity


def _ignore_low_cosines(candidates: Sequence[Candidate], minimum: float | None) -> Sequence[Candidate]:
    if minimum is None:
        return candidates
    return [
        replace(candidate, cosine=None)
        if candidate.cosine is not None and candidate.cosine < minimum
        else candidate
        for candidate in candidates
    ]


def _best_first(
    candidates: Sequence[Candidate], columns: fusion.Columns, floor: Floor | None
) -> list[ScoredCandidate]:
    scored = [
        ScoredCandidate(candidate.id, score, columns, position)
        for position, (candidate, score) in enumerate(zip(candidates, columns["score"], strict=True))
        if score > 0 and not (floor is not None and relevance.is_far(candidate, floor))
    ]
    return sorted(scored, key=lambda each: -each.score)
