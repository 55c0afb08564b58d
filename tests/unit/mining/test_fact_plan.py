"""CV5: what a model's reply about facts is read as."""

import json
from typing import Any

import orjson
import pytest

from shared.dreams.verification import fact_plan
from shared.dreams.verification.fact_plan import Relation
from shared.foundation import errors


def parse_one(**fields: Any) -> fact_plan.ProposedFact:
    [fact] = fact_plan.parse(json.dumps({"facts": [{"content": "Ada likes tea.", **fields}]}))
    return fact


def test_a_reply_without_facts_is_an_empty_plan() -> None:
    assert fact_plan.parse('{"facts": []}') == []


@pytest.mark.parametrize(
    "reply",
    ["", "no facts here", "{}", '{"facts": ["Ada likes tea."]}', '{"facts": "none"}', '["Ada likes tea."]'],
)
def test_a_reply_of_another_shape_is_unusable(reply: str) -> None:
    with pytest.raises(errors.InvalidModelReply):
        fact_plan.parse(reply)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ([["talk", 3], ["talk", 5]], (("talk", 3), ("talk", 5))),
        (["talk", 3], (("talk", 3),)),
        ([["talk", 3], ["talk", 3]], (("talk", 3),)),
        ([["talk", True], ["talk"], [3, "talk"], "talk#3", None], ()),
        ("talk", ()),
        (None, ()),
    ],
)
def test_sources_are_session_ids_with_numbers(written: Any, expected: tuple[object, ...]) -> None:
    assert parse_one(sources=written).sources == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [(None, Relation.NEW), (" Changed ", Relation.CHANGED), ("similar", None), (7, None)],
)
def test_a_relation_is_new_unless_it_says_otherwise(written: Any, expected: Relation | None) -> None:
    assert parse_one(relation=written).relation is expected


@pytest.mark.parametrize("written", ["[ID:0123456789AB]", "id:0123456789ab", " 0123456789ab "])
def test_ids_are_read_with_their_label(written: str) -> None:
    assert parse_one(of=written).of_id == "0123456789ab"


@pytest.mark.parametrize("written", ["last week", "0001-01-01T00:00:00+14:00", "9999-12-31T23:00:00-05:00"])
def test_what_is_no_time_that_can_be_stored_is_none(written: str) -> None:
    assert parse_one(occurredAt=written).occurred_at is None


def test_a_day_is_a_time() -> None:
    moment = parse_one(occurredAt="2026-03-04").occurred_at
    assert moment is not None
    assert moment.isoformat() == "2026-03-04T00:00:00+00:00"


@pytest.mark.parametrize("number", [10**30, -(10**400)])
def test_a_plan_with_a_number_without_end_can_be_stored_and_keeps_its_source(number: int) -> None:
    fact = parse_one(sources=[["talk", 1], ["talk", number]])
    assert len(fact.sources) == 2, "so that the check finds a source that was not shown"
    assert orjson.dumps(fact_plan.as_json([fact]))


def test_a_plan_is_stored_in_the_models_own_format() -> None:
    fields = {
        "relation": "changed",
        "of": "0123456789ab",
        "sources": [["talk\x00", 3]],
        "importance": 2,
        "quotes": ["likes tea"],
    }
    [stored] = fact_plan.as_json([parse_one(**fields)])
    assert stored == {
        "content": "Ada likes tea.",
        "category": None,
        "tags": [],
        "importance": 1.0,
        "occurredAt": None,
        "relation": "changed",
        "of": "0123456789ab",
        "sources": [["talk\ufffd", 3]],
        "quotes": ["likes tea"],
    }


def test_a_reply_of_too_many_facts_is_unusable() -> None:
    for count, is_usable in ((fact_plan.MAX_FACTS, True), (fact_plan.MAX_FACTS + 1, False)):
        reply = json.dumps({"facts": [{"content": f"Ada owns order {number}."} for number in range(count)]})
        if is_usable:
            assert len(fact_plan.parse(reply)) == count
        else:
            with pytest.raises(errors.InvalidModelReply, match="201 facts"):
                fact_plan.parse(reply)
