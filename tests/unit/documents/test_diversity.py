"""The built-in re-ranker prefers what is relevant, and of what says the same only the best."""

from hypothesis import given
from hypothesis import strategies as st

from shared.memory.documents.diversity import ScoredText, choose


def texts(*scored: tuple[str, float]) -> list[ScoredText]:
    return [ScoredText(str(number), text, score) for number, (text, score) in enumerate(scored)]


def test_a_copy_gives_way_to_another_text_that_is_a_little_less_relevant() -> None:
    candidates = texts(
        ("refunds take thirty days", 1.0), ("refunds take thirty days", 0.98), ("Ada signs refunds", 0.8)
    )
    assert [text.id for text in choose(candidates, 2)] == ["0", "2"]


def test_a_text_that_is_hardly_relevant_does_not_take_the_place_of_a_copy() -> None:
    candidates = texts(("refunds take thirty days", 1.0), ("refunds take thirty days", 0.98), ("tea", 0.3))
    assert [text.id for text in choose(candidates, 2)] == ["0", "1"]


@given(st.lists(st.tuples(st.text(), st.floats(0.001, 5)), max_size=20), st.integers(0, 25))
def test_the_best_is_among_the_chosen_which_are_few_distinct_and_in_order(
    scored: list[tuple[str, float]], limit: int
) -> None:
    candidates = texts(*scored)
    chosen = choose(candidates, limit)
    assert len({text.id for text in chosen}) == len(chosen) == min(limit, len(candidates))
    scores = [text.score for text in chosen]
    assert scores == sorted(scores, reverse=True)
    if chosen:
        assert scores[0] == max(text.score for text in candidates)
