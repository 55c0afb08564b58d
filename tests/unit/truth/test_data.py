"""The labelled data of the benchmark: halves, and the sources of what is wrong."""

from pathlib import Path

from benchmarks.truth import data, words
from benchmarks.truth.data import Half, TruthData


def test_each_item_is_in_one_half(truth_file: Path, truth_data: TruthData) -> None:
    halves = [data.read(truth_file, half) for half in (Half.HOME, Half.ABROAD)]
    for name in ("pairs", "dialogues", "rewrites", "merges"):
        ids = sorted(item.id for half in halves for item in getattr(half, name))
        assert ids == sorted(item.id for item in getattr(truth_data, name))
    assert {Half.HOME, Half.ABROAD} == {data.half_of(f"item-{number}") for number in range(20)}


def test_a_wrong_fact_is_proposed_with_the_turn_that_shares_the_most_words(truth_data: TruthData) -> None:
    facts = {fact.text: fact for fact in truth_data.dialogues[0].facts}
    assert facts["The user tunes pianos in Odense."].sources == (2,)


def test_a_wrong_closing_is_proposed_after_the_session_that_says_what_it_closes(
    truth_data: TruthData,
) -> None:
    facts = {fact.text: fact for fact in truth_data.dialogues[0].facts}
    move = facts["The user no longer lives in Vejle."]
    assert (move.closes, move.sources) == ("The user lives in Vejle.", (3,))


def test_a_part_that_is_not_chosen_is_empty(truth_data: TruthData) -> None:
    chosen = truth_data.only(["merges"])
    assert (chosen.dialogues, chosen.rewrites, len(chosen.merges)) == ((), (), 1)


def test_texts_without_spaces_share_words_too() -> None:
    assert words.of("彼は福山で働く") & words.of("福山の会社")
    assert not words.of("彼は福山で働く") & words.of("広島の会社")
