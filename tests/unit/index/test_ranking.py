"""Ranking: the strategies, importance, minimum cosines, and the features of the default strategy."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.foundation import errors
from shared.search.ranking.candidate import Candidate
from shared.search.ranking.neighbours import neighbour_keys
from shared.search.ranking.rank import STRATEGIES, rank, top

NOON = datetime(2024, 3, 15, 12, tzinfo=UTC)


def _candidate(name: str, keyword: float | None = 1.0, cosine: float | None = None) -> Candidate:
    return Candidate(name, f"text of {name}", keyword, cosine)


def _order(query: str, *candidates: Candidate, strategy: str = "blend") -> list[str]:
    return [scored.id for scored in rank(query, candidates, strategy)]


def test_mean_averages_the_channels_that_found_a_record() -> None:
    candidates = [
        _candidate("both", 2.0, 0.6),
        _candidate("keyword", 4.0, None),
        _candidate("dense", None, 0.7),
        _candidate("at the bound", None, 0.5),
        _candidate("far", None, 0.49),
        _candidate("far but found", 1.0, 0.49),
    ]
    important = [candidate._replace(importance=1.0) for candidate in candidates]
    scores = {scored.id: scored.score for scored in rank("q", important, "mean")}
    assert scores == pytest.approx(
        {"keyword": 1.0, "dense": 0.7, "both": 0.55, "at the bound": 0.5, "far but found": 0.25}
    )


def test_rrf_adds_reciprocal_ranks() -> None:
    candidates = [_candidate("a", 9.0, 0.1), _candidate("b", 5.0, 0.9), _candidate("c", None, 0.5)]
    scores = {s.id: s.score / 0.75 for s in rank("q", candidates, "rrf")}
    assert scores == pytest.approx({"b": 1 / 62 + 1 / 61, "a": 1 / 61 + 1 / 63, "c": 1 / 62})


def test_an_unknown_strategy_is_refused_by_name() -> None:
    with pytest.raises(errors.Invalid, match="blend, bm25, mean, rrf"):
        rank("q", [_candidate("a")], "magic")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_importance_halves_a_score_at_zero_and_keeps_it_at_one(strategy: str) -> None:
    candidates = [
        _candidate("high", 1.0, 0.8)._replace(importance=1.0),
        _candidate("low", 1.0, 0.8)._replace(importance=0.0),
    ]
    by_id = {scored.id: scored.score for scored in rank("q", candidates, strategy)}
    if strategy == "rrf":
        assert by_id["high"] > by_id["low"]
    else:
        assert by_id["low"] == pytest.approx(by_id["high"] / 2)


@pytest.mark.parametrize("strategy", ["blend", "rrf", "mean"])
def test_a_minimum_drops_records_that_only_the_vector_found_below_it(strategy: str) -> None:
    candidates = [_candidate("near", None, 0.31), _candidate("far", None, 0.29), _candidate("word", 1.0, 0.1)]
    ranked = rank("q", candidates, strategy, min_similarity=0.3)
    assert {scored.id for scored in ranked} == {"near", "word"}


def test_without_a_minimum_every_hit_of_a_channel_is_kept() -> None:
    hits = [_candidate("a", None, 0.2), _candidate("b", None, 0.1), _candidate("c", 0.5, None)]
    assert set(_order("q", *hits)) == {"a", "b", "c"}


def test_equal_scores_keep_their_order() -> None:
    assert _order("q", _candidate("b"), _candidate("a"), _candidate("c")) == ["b", "a", "c"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_candidates_give_no_result(strategy: str) -> None:
    assert rank("q", [], strategy) == []


def test_neighbouring_words_of_the_query_count_more() -> None:
    apart = _candidate("apart")._replace(text="the group gave me support")
    adjacent = _candidate("adjacent")._replace(text="the Support Group met")
    assert _order("support group", apart, adjacent) == ["adjacent", "apart"]


def test_a_question_about_me_prefers_what_the_user_said() -> None:
    answer = _candidate("assistant")._replace(role="assistant")
    statement = _candidate("user")._replace(role="user")
    assert _order("What is my deadline?", answer, statement)[0] == "user"
    assert _order("What deadline did you recommend to me?", answer, statement)[0] == "assistant"


def test_a_question_that_names_a_speaker_prefers_what_they_said() -> None:
    by_other = _candidate("other")._replace(speaker="Melanie")
    by_named = _candidate("named")._replace(speaker="Caroline Smith")
    assert _order("What is Caroline's plan?", by_other, by_named)[0] == "named"


def test_a_date_in_the_question_prefers_what_happened_around_it() -> None:
    june = _candidate("june")._replace(day=date(2023, 6, 2))
    may = _candidate("may")._replace(day=date(2023, 5, 9))
    assert _order("What did she paint on 8 May 2023?", june, may)[0] == "may"


def test_yesterday_is_relative_to_now() -> None:
    old = _candidate("old")._replace(day=(NOON - timedelta(days=40)).date())
    new = _candidate("new")._replace(day=(NOON - timedelta(days=1)).date())
    ranked = rank("what happened yesterday", [old, new], now=NOON)
    assert ranked[0].id == "new"


def test_when_prefers_words_of_time_and_how_many_prefers_numbers() -> None:
    plain = _candidate("plain")._replace(text="she ran a race")
    timed = _candidate("timed")._replace(text="she ran a race last week")
    counted = _candidate("counted")._replace(text="she ran 3 races")
    assert _order("When did she run?", plain, timed)[0] == "timed"
    assert _order("How many races did she run?", plain, counted)[0] == "counted"


def test_a_turn_next_to_a_hit_ranks_above_others() -> None:
    hit = _candidate("hit", 9.0)._replace(session_id="s", seq=4)
    adjacent = _candidate("adjacent", 2.0)._replace(session_id="s", seq=5)
    distant = _candidate("distant", 2.0)._replace(session_id="s", seq=40)
    elsewhere = _candidate("elsewhere", 2.0)._replace(session_id="t", seq=5)
    assert _order("q", elsewhere, distant, adjacent, hit) == ["hit", "adjacent", "distant", "elsewhere"]


def test_the_same_seq_of_another_session_is_not_a_neighbour() -> None:
    hit = _candidate("hit", 9.0)._replace(session_id="s", seq=4)
    other = _candidate("other", 2.0)._replace(session_id="t", seq=5)
    assert "near" not in {s.id: s for s in rank("q", [hit, other])}["other"].scores


def test_explain_names_every_part_and_the_score_stays_within_one() -> None:
    best = _candidate("a", 3.0, 0.9)._replace(text="my red car", importance=1.0, role="user")
    ranked = rank("What is my red car?", [best, _candidate("b", 1.0, 0.3)])
    assert ranked[0].scores["score"] == ranked[0].score == pytest.approx(1.0)
    assert set(ranked[0].scores) == {
        "keyword", "dense", "session", "role", "phrase", "importance", "score"
    }  # fmt: skip


def test_the_last_position_goes_to_a_reserved_record() -> None:
    ranked = rank("q", [_candidate(name, 9.0 - i) for i, name in enumerate("abcd")])
    assert [s.id for s in top(ranked, 2, {"c", "d"})] == ["a", "c"]
    assert [s.id for s in top(ranked, 2, {"b"})] == ["a", "b"]
    assert [s.id for s in top(ranked, 2, {"z"})] == ["a", "b"]
    assert top(ranked, 0, {"a"}) == []


def test_neighbour_keys_are_those_of_hits_in_a_session_without_candidates() -> None:
    first = _candidate("first", 9.0)._replace(session_id="s", seq=4)
    second = _candidate("second", 5.0)._replace(session_id="s", seq=5)
    memory = _candidate("memory", 4.0)
    candidates = [first, second, memory]
    assert neighbour_keys(rank("q", candidates), candidates) == [("s", 3), ("s", 6)]


_SCORES = st.none() | st.floats(min_value=0.01, max_value=50)
_COSINES = st.none() | st.floats(min_value=-1, max_value=1)


@given(st.text(), st.lists(st.tuples(_SCORES, _COSINES), max_size=12), st.sampled_from(STRATEGIES))
def test_scores_are_descending_and_within_bounds(
    query: str, channels: list[tuple[float | None, float | None]], strategy: str
) -> None:
    candidates = [Candidate(str(i), query, keyword, cosine) for i, (keyword, cosine) in enumerate(channels)]
    scores = [scored.score for scored in rank(query, candidates, strategy)]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
