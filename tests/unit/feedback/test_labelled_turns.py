"""The labelled turns are many, in several languages and domains, and half of them are no corrections."""

import hashlib
from collections import Counter

from tests.unit.feedback.labelled_turns import Half, read, read_half


def test_there_are_three_hundred_turns_without_repeats_in_four_languages_and_domains() -> None:
    turns = read()
    assert len({turn.text for turn in turns}) == len(turns) >= 300
    languages = Counter(turn.language for turn in turns)
    assert sum(number >= 60 for number in languages.values()) >= 4
    assert {turn.domain for turn in turns} == {"support", "coding", "booking", "cooking"}
    assert {turn.label for turn in turns} == {"correction", "other"}


def test_half_of_the_turns_are_no_corrections_in_every_language_and_domain() -> None:
    turns = read()
    for group in {turn.language for turn in turns} | {turn.domain for turn in turns}:
        labels = [turn.corrects for turn in turns if group in {turn.language, turn.domain}]
        assert 0.4 <= sum(labels) / len(labels) <= 0.6
    assert sum(not turn.corrects for turn in turns) / len(turns) >= 0.5


def test_the_tuning_half_has_the_texts_whose_sha256_is_even() -> None:
    digests = {turn.text: int(hashlib.sha256(turn.text.encode()).hexdigest(), 16) for turn in read()}
    assert all(digests[turn.text] % 2 == 0 for turn in read_half(Half.TUNING))
    assert all(digests[turn.text] % 2 == 1 for turn in read_half(Half.HELD_OUT))
    assert len(read_half(Half.TUNING)) + len(read_half(Half.HELD_OUT)) == len(digests)
