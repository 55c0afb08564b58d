"""The IDFs that the scores of keyword hits imply, and which of several versions of a record counts."""

import pytest

from shared.search.index.hits import Hit, newest_versions
from shared.search.index.recent_writes import score, solve_idfs


def test_the_idfs_are_those_by_which_the_hits_were_scored() -> None:
    idfs = {1: 4.0, 2: 0.5, 3: 2.0}
    texts = [{1: 1.0, 2: 0.8}, {2: 1.2}, {3: 1.0, 2: 0.4}, {1: 0.6, 3: 0.9}, {1: 1.1, 2: 1.0, 3: 0.2}]
    solved = solve_idfs([(weights, score(weights, idfs)) for weights in texts], [1, 2, 3])
    assert solved == pytest.approx(idfs, rel=0.02)


def test_a_term_that_no_hit_has_counts_as_much_as_the_rarest_of_the_others() -> None:
    solved = solve_idfs([({1: 1.0}, 3.0), ({2: 1.0}, 1.0)], [1, 2, 9])
    assert solved == pytest.approx({1: 3.0, 2: 1.0, 9: 3.0})


def test_without_hits_all_terms_count_the_same() -> None:
    assert len(set(solve_idfs([], [1, 2]).values())) == 1


def test_of_several_versions_of_a_record_only_the_newest_is_a_hit() -> None:
    hits = [Hit("a", 2, 1.0, None), Hit("a", 1, 3.0, None), Hit("b", 1, 2.0, None), Hit("b", 4, None, 0.5)]
    assert newest_versions(hits) == [Hit("a", 2, 1.0, None), Hit("b", 4, None, 0.5)]
