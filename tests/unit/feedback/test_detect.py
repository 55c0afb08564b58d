"""FB2: corrections by users are recognised in ten languages, without false positives."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.conversation.feedback.detect import is_correction
from tests.unit.feedback.correction_corpus import CORRECTIONS, OTHERS


@pytest.mark.parametrize("text", CORRECTIONS)
def test_fb2_a_turn_that_corrects_the_agent_is_recognised(text: str) -> None:
    assert is_correction(text)


@pytest.mark.parametrize("text", OTHERS)
def test_fb2_a_turn_that_only_looks_like_a_correction_is_not_recognised(text: str) -> None:
    assert not is_correction(text)


def test_the_corpus_has_at_least_eighty_examples_of_each_kind_without_repeats() -> None:
    assert len(set(CORRECTIONS)) == len(CORRECTIONS) >= 80
    assert len(set(OTHERS)) == len(OTHERS) >= 80


@pytest.mark.parametrize("text", CORRECTIONS)
def test_a_correction_in_capitals_or_after_thanks_is_recognised(text: str) -> None:
    assert is_correction(text.upper())
    assert is_correction(f" Thanks.\n{text} ")


def test_a_complaint_is_found_before_and_after_long_pasted_text() -> None:
    log = "\n".join(f"2026-11-21 line {number} of a log" for number in range(500))
    assert is_correction(f"That didn't work:\n{log[:15_000]}")
    assert is_correction(f"{log[:15_000]}\nThat didn't work.")
    assert not is_correction(log)


def test_quoted_text_and_code_are_ignored() -> None:
    for text in ('Translate "no, that is wrong".', "Translate «non, c'est faux».", "Run `no, that's wrong`"):
        assert not is_correction(text)
    assert is_correction('No, I said "that\'s fine" to the other offer.')


@given(st.text())
def test_detection_raises_no_error_for_any_text(text: str) -> None:
    assert is_correction(text) in {True, False}


_UNITS = ("no, ", "no,", "that is ", "it is still ", "hmm, ", "i said a ", "you sent a ", "h", "try ", "if ")


@pytest.mark.parametrize("unit", [*_UNITS, '"', "`", "```", "> ", "非", "\n", " ", "«", "aber "])
def test_detection_is_fast_for_adversarial_turns_of_the_maximum_size(unit: str) -> None:
    text = (unit * 256_000)[:256_000]
    started_at = time.process_time()
    is_correction(text)
    assert time.process_time() - started_at < 1
