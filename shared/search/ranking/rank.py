"""From candidates to an order: pure functions, the same for memories, turns, desk and documents."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from shared.foundation import errors
from shared.search.ranking import fusion
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
) -> list[ScoredCandidate]:
    """Return the candidates that match, best first; equal scores keep the order they came in.

    A cosine below `min_similarity` counts as not found (at it, as found); only the strategy `mean` has a
    bound by default. A candidate that no channel found and no feature speaks for is left out. The score
    is multiplied by 0.5 + 0.5 · importance. `scores` holds every part. An unknown strategy is Invalid.
    """
    if strategy not in STRATEGIES:
        raise errors.Invalid("strategy", f"must be one of {', '.join(STRATEGIES)}")
    heard = _within(candidates, _bound(strategy, min_similarity))
    plain = fusion.FUSION_STRATEGIES.get(strategy)
    parts = plain(heard) if plain else blend(query, heard, now)
    scored = [_weighed(c, p) for c, p in zip(heard, parts, strict=True) if p["score"] > 0]
    return sorted(scored, key=lambda s: -s.score)


def top(
    ranked: Sequence[ScoredCandidate], limit: int, reserved: Collection[str] = ()
) -> list[ScoredCandidate]:
    """Return the best `limit`; if none of `reserved` is among them, the best of those is made the last."""
    best = list(ranked[:limit])
    if not best or any(s.id in reserved for s in best):
        return best
    kept = next((s for s in ranked[limit:] if s.id in reserved), None)
    return [*best[:-1], kept] if kept else best


def _bound(strategy: str, min_similarity: float | None) -> float | None:
    if min_similarity is None and strategy == "mean":
        return fusion.MEAN_MIN_COSINE
    return min_similarity


def _within(candidates: Sequence[Candidate], bound: float | None) -> Sequence[Candidate]:
    if bound is None:
        return candidates
    return [replace(c, cosine=None) if c.cosine is not None and c.cosine < bound else c for c in candidates]


def _weighed(candidate: Candidate, parts: fusion.ScoreParts) -> ScoredCandidate:
    boost = 0.5 + 0.5 * min(max(candidate.importance, 0.0), 1.0)
    score = parts["score"] * boost
    return ScoredCandidate(candidate.id, score, {**parts, "importance": boost, "score": score})
