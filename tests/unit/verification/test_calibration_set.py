"""The calibration set itself: every language, type and verdict is there, and no pair repeats another.

Of a pair with `closes` the verdict says whether the evidence ends that stored statement, so that nothing of
it still holds. The evidence says the new statement beside it in each of these pairs.
"""

import json
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import pytest

CALIBRATION_FILE = Path(__file__).parents[3] / "shared" / "verification" / "calibration.jsonl"
PAIRS: list[dict[str, Any]] = [json.loads(line) for line in CALIBRATION_FILE.read_text("utf-8").splitlines()]

LANGUAGES = ["en", "de", "fr", "es", "it", "pt", "ja", "zh"]
CLOSING_TYPES = ["closing_same", "closing_other", "closing_too_much", "closing_safety"]
TYPES = [
    "earlier_reference",
    "relative_date",
    "clock",
    "number_form",
    "paraphrase",
    "answer_to_question",
    "reworded_negation",
    "denial",
    "hypothesis",
    "other_person",
    "visit_or_plan",
    "past_for_present",
    "wrong_specific",
    "added_detail",
    "fused_facts",
    "injection",
    *CLOSING_TYPES,
]
VERDICTS = ["supported", "contradicted", "not_said"]
FIELDS = {"id", "lang", "type", "evidence", "statement", "verdict"}


def pair_texts(pair: dict[str, Any]) -> list[str]:
    """Return all texts of a pair: its turns, its statement and what it would close."""
    closed_texts = [pair["closes"]] if "closes" in pair else []
    return [turn["text"] for turn in pair["evidence"]] + [pair["statement"], *closed_texts]


def test_there_are_160_pairs_with_ids_of_their_own() -> None:
    assert len(PAIRS) == 160
    assert len({pair["id"] for pair in PAIRS}) == 160


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair["id"])
def test_a_pair_has_its_fields_and_none_is_empty(pair: dict[str, Any]) -> None:
    assert set(pair) - {"closes"} == FIELDS
    assert pair["verdict"] in VERDICTS
    assert ("closes" in pair) == (pair["type"] in CLOSING_TYPES)
    assert 1 <= len(pair["evidence"]) <= 4
    for text in [pair["id"], *pair_texts(pair)]:
        assert text
        assert text == text.strip()


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair["id"])
def test_the_turns_of_a_pair_have_speakers_and_dates_in_order(pair: dict[str, Any]) -> None:
    for turn in pair["evidence"]:
        assert set(turn) == {"speaker", "date", "text"}
        assert turn["speaker"].strip()
    dates = [date.fromisoformat(turn["date"]) for turn in pair["evidence"]]
    assert dates == sorted(dates)


def test_the_id_of_a_pair_tells_its_language_but_neither_its_type_nor_its_verdict() -> None:
    for pair in PAIRS:
        language, number = pair["id"].split("-")
        assert language == pair["lang"]
        assert number.isdigit()


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_has_about_twenty_pairs_and_half_of_them_are_supported(language: str) -> None:
    verdicts = Counter(pair["verdict"] for pair in PAIRS if pair["lang"] == language)
    assert 15 <= verdicts.total() <= 25
    assert verdicts["supported"] * 2 == verdicts.total()


def test_there_is_no_other_language_and_no_other_type() -> None:
    assert {pair["lang"] for pair in PAIRS} == set(LANGUAGES)
    assert {pair["type"] for pair in PAIRS} == set(TYPES)


def test_exactly_half_of_the_pairs_are_supported_and_the_others_are_of_both_kinds() -> None:
    verdicts = Counter(pair["verdict"] for pair in PAIRS)
    assert verdicts["supported"] == 80
    assert verdicts["contradicted"] >= 24
    assert verdicts["not_said"] >= 24


@pytest.mark.parametrize("pair_type", TYPES)
def test_a_judge_that_always_says_the_same_fails_in_each_type(pair_type: str) -> None:
    is_supported = Counter(pair["verdict"] == "supported" for pair in PAIRS if pair["type"] == pair_type)
    assert is_supported.total() >= 8
    assert is_supported[True] >= 3
    assert is_supported[False] >= 3


def test_no_text_of_a_pair_occurs_in_another_pair() -> None:
    folded_texts = [(pair["id"], text.casefold()) for pair in PAIRS for text in pair_texts(pair)]
    repeated = [
        (pair_id, other_id, text)
        for pair_id, text in folded_texts
        for other_id, other_text in folded_texts
        if pair_id != other_id and text in other_text
    ]
    assert repeated == []
