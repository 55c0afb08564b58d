"""EN2: JSON is parsed from any reply of a model, or errors.InvalidModelReply is raised."""

import json
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.foundation import errors, model_output
from tests.unit.replies.corpus import CUT_OFF, MISSHAPEN, REPLIES
from tests.unit.replies.strategies import json_values, spoilt

items = st.lists(st.dictionaries(st.text(max_size=9), json_values, min_size=1, max_size=4), max_size=4)


def test_the_corpus_has_at_least_sixty_replies() -> None:
    assert len(REPLIES) >= 60


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_gives_objects_or_is_invalid(name: str) -> None:
    reply, expected = REPLIES[name]
    try:
        objects = model_output.parse_objects(reply)
    except errors.InvalidModelReply:
        assert not expected
        assert expected is None
    else:
        assert all(isinstance(item, dict) for item in objects)
        assert (objects == []) == (expected == [])


def test_an_error_object_is_not_an_empty_array() -> None:
    assert model_output.parse_objects(MISSHAPEN["an error"][0]) == [
        {"error": "I cannot do that", "items": []}
    ]


@given(items)
def test_the_objects_of_an_array_are_parsed_unchanged(expected: list[dict[str, object]]) -> None:
    text = json.dumps(expected)
    objects = model_output.parse_objects(text)
    assert json.dumps(objects) == text
    assert json.dumps(model_output.parse_objects(f"Sure:\n```json\n{text}\n```")) == text


@pytest.mark.parametrize("name", CUT_OFF)
@pytest.mark.parametrize("parse", [model_output.parse_objects, model_output.parse_object])
def test_nothing_of_a_cut_off_reply_counts(name: str, parse: Callable[[str], object]) -> None:
    with pytest.raises(errors.CutOffReply):
        parse(CUT_OFF[name][0])


@given(items.filter(bool), st.data())
def test_an_array_that_is_cut_anywhere_is_cut_off(
    expected: list[dict[str, object]], data: st.DataObject
) -> None:
    text = json.dumps(expected)
    with pytest.raises(errors.CutOffReply):
        model_output.parse_objects(text[: data.draw(st.integers(1, len(text) - 1))])


@given(items.filter(bool), st.data())
def test_an_object_that_is_cut_anywhere_is_cut_off(
    listed: list[dict[str, object]], data: st.DataObject
) -> None:
    text = json.dumps({"toDelete": [], "toSave": listed})
    with pytest.raises(errors.CutOffReply):
        model_output.parse_object(text[: data.draw(st.integers(1, len(text) - 1))], "toDelete", "toSave")


@given(spoilt)
def test_no_reply_raises_an_unexpected_error(reply: str) -> None:
    try:
        objects = model_output.parse_objects(reply)
    except errors.InvalidModelReply:
        return
    assert isinstance(objects, list)
    assert all(isinstance(item, dict) for item in objects)


@pytest.mark.parametrize(
    "unit", ["[", "{", '[{"', "<think>", "</think>", "<think>a</think>", '[{"a":[', "\n", " <", "]"]
)
def test_a_huge_reply_is_parsed_in_bounded_time(unit: str) -> None:
    started = time.perf_counter()
    with pytest.raises(errors.InvalidModelReply):
        model_output.parse_objects(unit * (200_000 // len(unit)))
    assert time.perf_counter() - started < 5


def test_a_hundred_thousand_items_are_parsed() -> None:
    expected = [{"content": f"fact {n}"} for n in range(100_000)]
    assert model_output.parse_objects(json.dumps(expected)) == expected
