"""LT20: what a filter expression may be. A refusal names the part and the rule."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from shared.foundation import errors
from shared.foundation.filter_expression import (
    MAX_CONDITIONS,
    MAX_DEPTH,
    AllOf,
    AnyOf,
    Comparison,
    FieldType,
    Operator,
    comparisons,
    parse,
)
from shared.memory.longterm.filter_fields import FIELDS

_RED = {"field": "tags", "op": "eq", "value": "red"}


def _condition(field: Any, op: Any, *value: Any) -> dict[str, Any]:
    return {"field": field, "op": op} | dict(zip(["value"], value, strict=False))


def _nested(depth: int, name: str) -> dict[str, Any]:
    expression: Any = _RED
    for _ in range(depth):
        expression = {name: expression if name == "not" else [expression]}
    return dict(expression)


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({}, "filter"),
        ([], "filter"),
        ("tags", "filter"),
        (None, "filter"),
        ({"and": []}, "filter.and"),
        ({"and": _RED}, "filter.and"),
        ({"or": [_RED] * (MAX_CONDITIONS + 1)}, "filter.or"),
        ({"and": [{"or": [_RED] * 17}, {"or": [_RED] * 16}]}, "filter"),
        ({"and": [_RED], "or": [_RED]}, "filter"),
        ({"xor": [_RED]}, "filter"),
        ({**_RED, "more": 1}, "filter"),
        ({"not": [_RED]}, "filter.not"),
        (_nested(MAX_DEPTH + 1, "not"), "filter" + ".not" * MAX_DEPTH),
        (_nested(MAX_DEPTH + 1, "and"), "filter" + ".and.0" * MAX_DEPTH),
        (_condition("colour", "eq", "red"), "filter.field"),
        (_condition("metadata", "eq", "red"), "filter.field"),
        (_condition("metadata.", "eq", "red"), "filter.field"),
        (_condition("metadata." + "x" * 65, "eq", "red"), "filter.field"),
        (_condition(["tags"], "eq", "red"), "filter.field"),
        (_condition("tags", "matches", "r.*"), "filter.op"),
        (_condition("tags", "gt", "red"), "filter.op"),
        (_condition("importance", "prefix", "0"), "filter.op"),
        (_condition("tags", None, "red"), "filter.op"),
        (_condition("tags", "eq"), "filter.value"),
        (_condition("tags", "eq", None), "filter.value"),
        (_condition("tags", "eq", ["red"]), "filter.value"),
        (_condition("tags", "eq", 5), "filter.value"),
        (_condition("tags", "eq", "a\x00b"), "filter.value"),
        (_condition("tags", "eq", "\ud800"), "filter.value"),
        (_condition("tags", "eq", "x" * 1025), "filter.value"),
        (_condition("tags", "in", "red"), "filter.value"),
        (_condition("tags", "in", []), "filter.value"),
        (_condition("tags", "in", ["red"] * 1001), "filter.value"),
        (_condition("tags", "in", ["red", 5]), "filter.value.1"),
        (_condition("tags", "exists", "yes"), "filter.value"),
        (_condition("metadata.colour", "eq", {"$regex": "r.*"}), "filter.value"),
        (_condition("metadata.colour", "eq", True), "filter.value"),
        (_condition("metadata.colour", "prefix", 5), "filter.value"),
        (_condition("importance", "gt", "0.5"), "filter.value"),
        (_condition("importance", "gt", True), "filter.value"),
        (_condition("importance", "gt", float("nan")), "filter.value"),
        (_condition("importance", "gt", float("inf")), "filter.value"),
        (_condition("importance", "gt", 10**400), "filter.value"),
        (_condition("created_at", "gt", 5), "filter.value"),
        (_condition("created_at", "gt", "1700000000"), "filter.value"),
        (_condition("created_at", "gt", "2024-01-01"), "filter.value"),
        (_condition("created_at", "gt", "2024-13-01T00:00:00Z"), "filter.value"),
        (_condition("created_at", "gt", "9999-01-01T00:00:00Z"), "filter.value"),
        (_condition("category", "prefix", "a/"), "filter.value"),
        (_condition("namespace", "eq", ""), "filter.value"),
        (_condition("state", "eq", "gone"), "filter.value"),
        (_condition("state", "eq", {}), "filter.value"),
    ],
)
def test_a_bad_expression_is_refused_with_its_part(bad: Any, field: str) -> None:
    with pytest.raises(errors.Invalid) as refused:
        parse(bad, FIELDS)
    assert [violation.field for violation in refused.value.violations] == [field]


def test_as_many_conditions_and_as_deep_as_allowed_are_accepted() -> None:
    assert len(list(comparisons(parse({"and": [_RED] * MAX_CONDITIONS}, FIELDS)))) == MAX_CONDITIONS
    assert parse(_nested(MAX_DEPTH, "not"), FIELDS) == parse(_RED, FIELDS)
    assert len(list(comparisons(parse(_nested(MAX_DEPTH, "or"), FIELDS)))) == 1


def test_negations_stand_at_the_conditions() -> None:
    blue = _condition("tags", "ne", "blue")
    red_tag = Comparison("tags", FieldType.TEXTS, Operator.EQ, ("red",))
    blue_tag = Comparison("tags", FieldType.TEXTS, Operator.EQ, ("blue",))
    not_red = Comparison("tags", FieldType.TEXTS, Operator.EQ, ("red",), is_negated=True)
    assert parse({"not": {"and": [_RED, blue]}}, FIELDS) == AnyOf((not_red, blue_tag))
    assert parse({"not": {"or": [_RED, {"not": _RED}]}}, FIELDS) == AllOf((not_red, red_tag))


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        (_condition("metadata.n", "gt", 0.1), Decimal("0.1")),
        (_condition("metadata.n", "gt", "0.1"), "0.1"),
        (_condition("importance", "gt", 1), 1.0),
        (_condition("created_at", "gt", "2024-01-02T01:00:00+01:00"), datetime(2024, 1, 2, tzinfo=UTC)),
        (_condition("created_at", "gt", "2024-01-02t00:00:00z"), datetime(2024, 1, 2, tzinfo=UTC)),
    ],
)
def test_values_have_the_type_of_their_field(condition: dict[str, Any], value: Any) -> None:
    parsed = next(comparisons(parse(condition, FIELDS)))
    assert (parsed.values, [type(item) for item in parsed.values]) == ((value,), [type(value)])
