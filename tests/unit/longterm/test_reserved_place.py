"""Which anti-patterns may take the place that a recall reserves for them."""

from typing import Any

from shared.memory.longterm import search
from shared.search.floor import Floor
from shared.search.ranking.candidate import Candidate

FLOOR = Floor(0.5, is_learnt=True)


def _row_candidate(
    name: str, keyword: float | None, cosine: float | None, category: str = "anti-patterns/x"
) -> Any:
    return {"id": name, "category": category, "tags": []}, Candidate(name, name, keyword, cosine)


def test_only_an_anti_pattern_that_matches_by_itself_has_a_reserved_place() -> None:
    candidates = [
        _row_candidate("word", 1.0, None),
        _row_candidate("near", None, 0.5),
        _row_candidate("far", None, 0.49),
        _row_candidate("beside a hit", None, None),
        _row_candidate("of another category", 1.0, 0.9, "general"),
    ]
    assert search._anti_pattern_ids(candidates, FLOOR) == {"word", "near"}
    assert search._anti_pattern_ids(candidates, None) == {"word"}
