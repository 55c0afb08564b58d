"""When a search finds nothing: the floor under the evidence of both channels."""

import random

import pytest

from shared.search import floor
from shared.search.floor import Floor
from shared.search.index.floors import unrelated_level
from shared.search.ranking import relevance
from shared.search.ranking.candidate import Candidate
from shared.search.ranking.query_analysis import capitalized_words
from shared.search.ranking.rank import STRATEGIES, rank

LEARNT, START = Floor(0.6, is_learnt=True), Floor(0.4, is_learnt=False)
QUERY = "When did Ada paint the red boat?"  # its content words are Ada, which counts 5, paint, red, boat


def _candidate(text: str, keyword: float | None, cosine: float | None) -> Candidate:
    return Candidate(text, text, keyword, cosine)


def _found(
    floor: Floor | None, *candidates: Candidate, strategy: str = "blend", query: str = QUERY
) -> list[str]:
    return [scored.id for scored in rank(query, candidates, strategy, floor=floor)]


@pytest.mark.parametrize(
    ("text", "keyword", "cosine", "is_found"),
    [
        ("nothing in common", None, 0.61, True),
        ("nothing in common", None, 0.59, False),
        ("a red lamp", 2.0, 0.61, True),
        ("a red lamp", 2.0, 0.59, False),
        ("paint a red boat", 4.0, 0.46, True),
        ("paint a red boat", 4.0, 0.44, False),
        ("Ada was here", 4.0, 0.16, True),
        ("Ada was here", 4.0, 0.14, False),
        ("Ada's red boat", 6.0, -0.2, True),
    ],
)
def test_the_cosine_that_is_enough_falls_with_the_share_of_words_that_match(
    text: str, keyword: float | None, cosine: float, *, is_found: bool
) -> None:
    assert bool(_found(LEARNT, _candidate(text, keyword, cosine))) is is_found


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name not in {"mean", "bm25"}])
def test_nothing_is_returned_by_any_strategy_if_nothing_is_relevant(strategy: str) -> None:
    unrelated = [_candidate(f"text {number}", None, 0.3) for number in range(20)]
    assert _found(None, *unrelated, strategy=strategy)
    assert _found(LEARNT, *unrelated, strategy=strategy) == []
    assert _found(START, *unrelated, strategy=strategy) == []


def test_without_an_embedder_more_than_a_quarter_of_the_words_must_match() -> None:
    assert _found(LEARNT, _candidate("a red boat", 2.0, None)) == []
    assert _found(LEARNT, _candidate("paint a red boat", 2.0, None)) == ["paint a red boat"]


def test_a_record_that_is_not_embedded_yet_is_found_by_half_of_the_words() -> None:
    embedded = _candidate("else", None, 0.1)
    assert _found(LEARNT, embedded, _candidate("Ada was here", 2.0, None)) == ["Ada was here"]
    assert _found(LEARNT, embedded, _candidate("paint a red boat", 2.0, None)) == []


def test_two_known_words_are_just_enough_beside_an_unknown_name() -> None:
    sold = _candidate("the boat was sold", 2.0, None)
    assert _found(LEARNT, sold, query="When was Grace's boat sold?") == ["the boat was sold"]
    assert _found(LEARNT, sold, query="When was Grace's boat bought?") == []
    assert _found(LEARNT, sold, query="when was grace's boat bought?") == ["the boat was sold"]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("Where does Ada live?", ["Ada"]),
        ("Ada lives where?", []),
        ("Thanks. Now tell me about (Ada) and Émile-Paul", ["Ada", "Émile-Paul"]),
        ("what did ada do on Monday or in May?", []),
        ("Where did I put it?\nGrace asked", ["I"]),
    ],
)
def test_names_are_capitalised_inside_a_sentence(query: str, names: list[str]) -> None:
    assert capitalized_words(query) == names


def test_words_of_a_long_text_weigh_less() -> None:
    short, long = "paint a red boat", "paint a red boat " + "and many other words " * 100
    assert _found(LEARNT, _candidate(short, 2.0, None)) == [short]
    assert _found(LEARNT, _candidate(long, 2.0, None)) == []


def test_a_hit_beyond_the_best_by_keyword_is_not_read() -> None:
    others = [_candidate(f"boat {number}", 3.0, None) for number in range(5)]
    assert _found(LEARNT, *others, _candidate("Ada's red boat", 2.0, None)) == []
    assert _found(LEARNT, *others[1:], _candidate("Ada's red boat", 2.0, None))


def test_with_few_records_one_word_or_the_start_value_is_enough() -> None:
    assert _found(START, _candidate("a red lamp", 2.0, 0.0)) == ["a red lamp"]
    assert _found(START, _candidate("else", None, 0.41)) == ["else"]
    assert _found(START, _candidate("else", None, 0.39)) == []


def test_far_records_do_not_count_beside_a_relevant_one() -> None:
    candidates = [
        _candidate("near", None, 0.7),
        _candidate("far", None, 0.15),
        _candidate("so-so", None, 0.2),
    ]
    assert set(_found(LEARNT, *candidates)) == {"near", "so-so"}


def test_the_ranking_is_that_without_a_floor_except_for_the_far_records() -> None:
    candidates = [
        _candidate("near", None, 0.7),
        _candidate("so-so", None, 0.3),
        _candidate("word", 0.1, 0.25),
        _candidate("far", None, 0.1),
    ]
    without = rank(QUERY, candidates)
    assert rank(QUERY, candidates, floor=LEARNT) == [scored for scored in without if scored.id != "far"]
    assert len(without) == 4


def test_a_minimum_of_the_caller_replaces_the_floor() -> None:
    candidates = [_candidate("else", None, 0.1)]
    for minimum, count in ((-1.0, 1), (0.05, 1), (0.2, 0)):
        assert len(rank(QUERY, candidates, "rrf", minimum, floor=LEARNT)) == count


def test_mean_keeps_its_own_minimum() -> None:
    candidate = _candidate("else", None, 0.55)
    assert _found(LEARNT, candidate, strategy="mean") == ["else"]


def test_a_reserved_place_needs_a_word_or_the_floor() -> None:
    assert relevance.is_match(_candidate("x", 0.1, None), LEARNT)
    assert relevance.is_match(_candidate("x", None, 0.6), LEARNT)
    assert not relevance.is_match(_candidate("x", None, 0.59), LEARNT)
    assert not relevance.is_match(_candidate("x", None, None), LEARNT)


def test_a_start_value_belongs_to_a_model_whatever_organisation_stands_before_its_name() -> None:
    few = floor.MIN_RECORDS - 1
    assert floor.floor_of("sentence-transformers/all-MiniLM-L6-v2", None, few) == Floor(0.4, is_learnt=False)
    unknown = Floor(floor.DEFAULT_START_VALUE, is_learnt=False)
    assert floor.floor_of("unknown", None, few) == floor.floor_of(None, None, few) == unknown


@pytest.mark.parametrize(("learnt", "used"), [(0.91, 0.4), (0.4, 0.4), (0.2, 0.2)])
def test_a_learnt_floor_is_at_most_the_start_value_of_its_model(learnt: float, used: float) -> None:
    many = floor.MIN_RECORDS
    assert floor.floor_of("all-MiniLM-L6-v2", learnt, many) == Floor(used, is_learnt=True)


def test_the_level_of_unrelated_vectors_is_above_nearly_all_of_their_pairs() -> None:
    draw = random.Random(5)
    vectors = [[draw.gauss(0.3, 1) for _ in range(30)] for _ in range(200)]
    level = unrelated_level(vectors)
    assert 0.4 < level < 0.7
    scaled = [[3 * x for x in vector] for vector in vectors]
    assert unrelated_level(scaled) == pytest.approx(level)
