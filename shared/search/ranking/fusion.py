"""Combine the scores of the sparse and the dense channel: the strategies that can be chosen by name.

`bm25` uses keywords alone. `mean` divides keyword scores by the best one and takes the mean with the
cosine; a record that only one channel found keeps the score of that channel. `rrf` is reciprocal rank
fusion (Cormack et al. 2009). The default strategy `blend` is in the module `blend`.
"""

from collections.abc import Callable, Sequence

from shared.search.ranking.candidate import Candidate

MEAN_MIN_COSINE = 0.5
RRF_K = 60

Columns = dict[str, list[float]]
"""The parts of the scores by name, each with a number per candidate. "score" is what they amount to."""


def bm25(candidates: Sequence[Candidate]) -> Columns:
    """Return the keyword scores, as shares of the best one."""
    shares = keyword_shares(candidates)
    return {"keyword": shares, "score": shares}


def mean(candidates: Sequence[Candidate]) -> Columns:
    """Return the mean of both scores of a record, or its only score."""
    shares = keyword_shares(candidates)
    return {
        "keyword": shares,
        "dense": [candidate.cosine or 0.0 for candidate in candidates],
        "score": [_mean(candidate, share) for candidate, share in zip(candidates, shares, strict=True)],
    }


def rrf(candidates: Sequence[Candidate]) -> Columns:
    """Return the sum of 1 / (RRF_K + rank) over the channels; ranks begin at 1."""
    keyword = _reciprocal_ranks([candidate.keyword for candidate in candidates])
    dense = _reciprocal_ranks([candidate.cosine for candidate in candidates])
    return {
        "keyword": keyword,
        "dense": dense,
        "score": [k + d for k, d in zip(keyword, dense, strict=True)],
    }


def keyword_shares(candidates: Sequence[Candidate]) -> list[float]:
    """Return each keyword score as a share of the best one, and 0 for a candidate without a score."""
    best = max((candidate.keyword or 0.0 for candidate in candidates), default=0.0)
    return [(candidate.keyword or 0.0) / best if best > 0 else 0.0 for candidate in candidates]


def _mean(candidate: Candidate, share: float) -> float:
    scores = [share] if candidate.keyword else []
    if candidate.cosine is not None:
        scores.append(candidate.cosine)
    return sum(scores) / len(scores) if scores else 0.0


def _reciprocal_ranks(scores: Sequence[float | None]) -> list[float]:
    best_first = sorted((-score, i) for i, score in enumerate(scores) if score is not None and score > 0)
    by_position = {i: 1 / (RRF_K + rank) for rank, (_, i) in enumerate(best_first, start=1)}
    return [by_position.get(i, 0.0) for i in range(len(scores))]


FUSION_STRATEGIES: dict[str, Callable[[Sequence[Candidate]], Columns]] = {
    "bm25": bm25,
    "mean": mean,
    "rrf": rrf,
}
