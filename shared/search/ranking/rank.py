"""Rank candidates. The functions are pure and the same for all kinds of records."""

from collections.abc import Collection, Sequence
from datetime import datetime

from shared.foundation import errors
from shared.search.floor import Floor
from shared.search.ranking import fusion, relevance
from shared.search.ranking.blend import Blend
from shared.search.ranking.candidate import Candidate, ScoredCandidate
from shared.search.ranking.latest_first import put_latest_first

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
    ranking = Ranking(query, strategy, min_similarity, now, floor)
    ranking.add(candidates)
    return ranking.best()


class Ranking:
    """A ranking of one query to which candidates can be added. Its parameters are those of `rank`."""

    def __init__(
        self,
        query: str,
        strategy: str = DEFAULT_STRATEGY,
        min_similarity: float | None = None,
        now: datetime | None = None,
        floor: Floor | None = None,
    ) -> None:
        if strategy not in STRATEGIES:
            raise errors.Invalid("strategy", f"must be one of {', '.join(STRATEGIES)}")
        self._query, self._strategy = query, strategy
        self._floor = None if min_similarity is not None or strategy == "mean" else floor
        self._min_cosine = _min_cosine(strategy, min_similarity)
        self._fuse = fusion.FUSION_STRATEGIES.get(strategy) or Blend(query, now).columns
        self._candidates: list[Candidate] = []
        self._columns: fusion.Columns = {"score": []}
        self._far: set[int] = set()
        self._is_relevant = self._floor is None

    @property
    def is_any_relevant(self) -> bool:
        """Whether anything was added that has to do with the query. Otherwise nothing is returned."""
        return self._is_relevant

    def counts_by_cosine(self, cosine: float) -> bool:
        """Return whether a candidate that no keyword found can be returned, by its cosine alone."""
        if self._fuse is fusion.bm25 or (cosine <= 0 and self._strategy != DEFAULT_STRATEGY):
            return False
        if self._min_cosine is not None and cosine < self._min_cosine:
            return False
        return self._floor is None or not relevance.is_far(cosine, self._floor)

    def add(self, candidates: Sequence[Candidate]) -> None:
        """Add candidates."""
        self._candidates += _ignore_low_cosines(candidates, self._min_cosine)
        if self._floor is not None:
            self._far = relevance.find_far(self._candidates, self._floor)
        if self._floor is not None and not self._is_relevant:
            self._is_relevant = relevance.is_any_relevant(self._query, self._candidates, self._floor)
        if self._is_relevant:
            columns = self._fuse(self._candidates)
            boosts = [0.5 + 0.5 * _within_unit(candidate.importance) for candidate in self._candidates]
            scores = [score * boost for score, boost in zip(columns["score"], boosts, strict=True)]
            self._columns = columns | {"importance": boosts, "score": scores}

    def best(self, limit: int | None = None) -> list[ScoredCandidate]:
        """Return all candidates, or at most `limit` of them, as `rank` does."""
        scores = self._columns["score"]
        # Sorting in reverse keeps equal scores in their order.
        positions = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
        counting = [position for position in positions if scores[position] > 0 and position not in self._far]
        return [
            ScoredCandidate(self._candidates[position].id, scores[position], self._columns, position)
            for position in counting[:limit]
        ]

    def latest_first(
        self, ranked: Sequence[ScoredCandidate], until: datetime | None = None
    ) -> list[ScoredCandidate]:
        """Return what `best` returned, with the newer of two that contradict each other above the older.

        What is true only after `until` counts as newer than nothing.
        """
        seconds = None if until is None else until.timestamp()
        return put_latest_first(self._query, ranked, self._candidates, seconds)


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
        candidate._replace(cosine=None)
        if candidate.cosine is not None and candidate.cosine < minimum
        else candidate
        for candidate in candidates
    ]


def _within_unit(importance: float) -> float:
    return min(max(importance, 0.0), 1.0)
