"""How the scores of two channels become one: the named strategies.

`mean` is the sources' rule: keyword scores are divided by the best one, a cosine counts as it is if it
reaches the bound, and a record that only one channel found keeps that channel's score. `rrf` is
reciprocal rank fusion (Cormack et al. 2009). `blend`, the default, is in `blend.py`.
"""

from collections.abc import Callable, Sequence

from shared.search.ranking.candidate import Candidate

MEAN_MIN_COSINE = 0.5
RRF_K = 60

ScoreParts = dict[str, float]


def bm25(candidates: Sequence[Candidate]) -> list[ScoreParts]:
    """Keywords alone, the best hit being 1."""
    return [{"keyword": share, "score": share} for share in keyword_shares(candidates)]


def mean(candidates: Sequence[Candidate]) -> list[ScoreParts]:
    """Return the mean of both channels where both found the record, else the one score."""
    return [_mean(c, share) for c, share in zip(candidates, keyword_shares(candidates), strict=True)]


def rrf(candidates: Sequence[Candidate]) -> list[ScoreParts]:
    """Return the sum of 1 / (RRF_K + rank) over the channels, ranks counted from 1."""
    keyword = _reciprocal_ranks([c.keyword for c in candidates])
    dense = _reciprocal_ranks([c.cosine for c in candidates])
    return [{"keyword": k, "dense": d, "score": k + d} for k, d in zip(keyword, dense, strict=True)]


def keyword_shares(candidates: Sequence[Candidate]) -> list[float]:
    """Return each keyword score as a share of the best one; 0 where there is none."""
    best = max((c.keyword or 0.0 for c in candidates), default=0.0)
    return [(c.keyword or 0.0) / best if best > 0 else 0.0 for c in candidates]


def _mean(candidate: Candidate, share: float) -> ScoreParts:
    found = [share] if candidate.keyword else []
    if candidate.cosine is not None:
        found.append(candidate.cosine)
    score = sum(found) / len(found) if found else 0.0
    return {"keyword": share, "dense": candidate.cosine or 0.0, "score": score}


def _reciprocal_ranks(scores: Sequence[float | None]) -> list[float]:
    found = sorted((-score, i) for i, score in enumerate(scores) if score is not None and score > 0)
    by_place = {i: 1 / (RRF_K + place) for place, (_, i) in enumerate(found, start=1)}
    return [by_place.get(i, 0.0) for i in range(len(scores))]


FUSION_STRATEGIES: dict[str, Callable[[Sequence[Candidate]], list[ScoreParts]]] = {
    "bm25": bm25,
    "mean": mean,
    "rrf": rrf,
}
