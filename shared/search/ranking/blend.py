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


def blend(query: str, candidates: Sequence[Candidate], now: datetime | None) -> Columns:
    """Return the features of the candidates and their weighted mean as "score".

    A feature that is 0 for all candidates has no weight, so that a score of 1 stays possible.
    """
    columns = {name: column for name, column in _columns(query, candidates, now).items() if any(column)}
    total = sum(WEIGHTS[name] for name in columns) or 1.0
    scores = [0.0] * len(candidates)
    for name, column in columns.items():
        weight = WEIGHTS[name]
        scores = [score + weight * value for score, value in zip(scores, column, strict=True)]
    return columns | {"score": [score / total for score in scores]}


def _columns(query: str, candidates: Sequence[Candidate], now: datetime | None) -> Columns:
    cues = analyze(query, now)
    keyword, dense = features.keyword(candidates), features.dense(candidates)
    match = [(k + d) / 2 for k, d in zip(keyword, dense, strict=True)] if any(dense) else keyword
    return {
        "keyword": keyword,
        "dense": dense,
        "near": features.near(candidates, match),
        "session": features.session(candidates, match),
        "role": features.role(candidates, cues),
        "name": features.name(candidates, cues),
        "date": features.date(candidates, cues),
        "time": features.time(candidates, cues),
        "number": features.number(candidates, cues),
        "phrase": features.phrase(candidates, cues),
    }
