"""What a ranking says of vectors that were not read yet is what it does with them."""

import pytest

from shared.search.floor import Floor
from shared.search.ranking.candidate import Candidate
from shared.search.ranking.rank import STRATEGIES, Ranking

COSINES = (-0.2, 0.0, 0.05, 0.11, 0.12, 0.3, 0.49, 0.5, 0.8)
FLOOR = Floor(0.4, is_learnt=True)


@pytest.mark.parametrize("minimum", [None, -1.0, 0.3])
@pytest.mark.parametrize("floor", [None, FLOOR])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_vector_counts_exactly_if_the_ranking_returns_it(
    strategy: str, floor: Floor | None, minimum: float | None
) -> None:
    """Otherwise a search would read on for nothing, or end its pages too early."""
    relevant = Candidate("relevant", "lantern oil", 3.0, 0.9)
    for cosine in COSINES:
        ranking = Ranking("lantern oil", strategy, minimum, floor=floor)
        ranking.add([relevant, Candidate("far", "harbour", None, cosine)])
        assert ranking.is_any_relevant
        is_returned = "far" in {scored.id for scored in ranking.best()}
        assert ranking.counts_by_cosine(cosine) == is_returned, cosine


def test_nothing_is_relevant_before_anything_was_added_and_beside_unrelated_records() -> None:
    ranking = Ranking("lantern oil", floor=FLOOR)
    assert not ranking.is_any_relevant
    ranking.add([Candidate("far", "harbour", None, 0.13)])
    assert not ranking.is_any_relevant
