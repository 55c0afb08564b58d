"""The default strategy: the weighted mean of the features."""

from collections.abc import Sequence
from datetime import datetime

from shared.search.ranking import features
from shared.search.ranking.candidate import Candidate
from shared.search.ranking.fusion import Columns
from shared.search.ranking.query_analysis import analyze

WEIGHTS = {
    "keyword": 1.0,
    "dense": 1.0,
    "near": 0.7,
    "session": 1.0,
    "role": 1.0,
    "name": 1.2,
    "date": 1.5,
    "time": 0.5,
    "number": 0.6,
    "phrase": 0.3,
}


# What a candidate has by itself, whatever the others are.
_OWN_FEATURES = {
    "role": features.role,
    "name": features.name,
    "date": features.date,
    "time": features.time,
    "number": features.number,
    "phrase": features.phrase,
}


class Blend:
    """The strategy for one query. What a candidate has by itself is computed once."""

    def __init__(self, query: str, now: datetime | None) -> None:
        self._cues = analyze(query, now)
        self._own: Columns = {name: [] for name in _OWN_FEATURES}

    def columns(self, candidates: Sequence[Candidate]) -> Columns:
        """Return the features of the candidates and their weighted mean as "score".

        The candidates of an earlier call come first. A feature that is 0 for all candidates has no
        weight, so that a score of 1 stays possible.
        """
        for name, feature in _OWN_FEATURES.items():
            self._own[name] += feature(candidates[len(self._own[name]) :], self._cues)
        return _with_score(_features_among(candidates) | self._own)


def _with_score(all_columns: Columns) -> Columns:
    columns = {name: column for name, column in all_columns.items() if any(column)}
    total = sum(WEIGHTS[name] for name in columns) or 1.0
    scores = [0.0] * len(all_columns["keyword"])
    for name, column in columns.items():
        weight = WEIGHTS[name]
        scores = [score + weight * value for score, value in zip(scores, column, strict=True)]
    return columns | {"score": [score / total for score in scores]}


def _features_among(candidates: Sequence[Candidate]) -> Columns:
    """Return the features that depend on the other candidates."""
    keyword, dense = features.keyword(candidates), features.dense(candidates)
    match = [(k + d) / 2 for k, d in zip(keyword, dense, strict=True)] if any(dense) else keyword
    return {
        "keyword": keyword,
        "dense": dense,
        "near": features.near(candidates, match),
        "session": features.session(candidates, match),
    }
