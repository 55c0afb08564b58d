"""Parsing import lines: field names may be camelCase, and one invalid value rejects the whole line."""

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.foundation import errors
from shared.foundation.stages import MemoryState
from shared.lifecycle.transfer import graph_lines, ndjson
from shared.lifecycle.transfer.ndjson import MAX_VALUES

MINIMAL_LINE: dict[str, Any] = {"id": "00000000ada0", "content": "x"}


def parse(**fields: Any) -> ndjson.MemoryLine:
    return ndjson.parse_line(orjson.dumps(MINIMAL_LINE | fields))


@pytest.mark.parametrize(
    ("camel_name", "name", "value"),
    [
        ("createdAt", "created_at", "2026-01-02T03:04:05Z"),
        ("importanceScore", "importance", 0.25),
        ("reinforcementCount", "reinforcement_count", 2),
        ("archiveReason", "archive_reason", "old"),
    ],
)
def test_field_names_may_be_snake_case_or_camel_case(camel_name: str, name: str, value: object) -> None:
    assert getattr(parse(**{camel_name: value}), name) == getattr(parse(**{name: value}), name)
    assert name in parse(**{camel_name: value}).model_fields_set


def test_times_without_a_zone_are_utc_and_are_truncated_to_microseconds() -> None:
    occurred_at = parse(occurred_at="2026-02-25T10:11:12.1234567").occurred_at
    assert occurred_at is not None
    assert occurred_at.isoformat() == "2026-02-25T10:11:12.123456+00:00"


@pytest.mark.parametrize("name", ["tags", "metadata", "importance", "superseded_by", "lastSeenAt", "state"])
def test_null_in_a_field_that_is_not_nullable_counts_as_absent(name: str) -> None:
    assert parse(**{name: None}).model_fields_set == {"id", "content"}


def test_null_in_a_nullable_field_counts_as_set() -> None:
    assert "category" in parse(category=None).model_fields_set


def test_a_line_with_archived_at_is_archived() -> None:
    assert parse(archived_at="2026-01-02T03:04:05Z").state is MemoryState.ARCHIVED


def test_a_line_with_a_live_state_also_sets_archived_at() -> None:
    assert "archived_at" in parse(state="final").model_fields_set


def test_a_single_source_becomes_a_list_with_one_element() -> None:
    assert [line.session_id for line in parse(source={"session_id": "s"}).sources] == ["s"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"id": " "}, "id"),
        ({"id": 7}, "id"),
        ({"content": "a\x00b"}, "content"),
        ({"content": "x" * 16_001}, "content"),
        ({"importance": 1.5}, "importance"),
        ({"importance": "0.5"}, "importance"),
        ({"importance": True}, "importance"),
        ({"reinforcement_count": 0}, "reinforcement_count"),
        ({"reinforcement_count": 2**31}, "reinforcement_count"),
        ({"tags": "travel"}, "tags"),
        ({"tags": ["a\nb"]}, "tags.0"),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"state": "gone"}, "state"),
        ({"state": "archived"}, "archived_at"),
        ({"state": "final", "archived_at": "2026-01-02T03:04:05Z"}, "archived_at"),
        ({"created_at": 1_700_000_000}, "created_at"),
        ({"created_at": "0001-01-01T00:00:00+14:00"}, "created_at"),
        ({"occurred_at": "9999-12-31T23:59:59.999999Z"}, "occurred_at"),
        ({"created_at": "9998-12-31T23:00:00-14:00"}, "created_at"),
        ({"created_at": "yesterday"}, "created_at"),
        ({"sources": [{"session_id": "no good"}]}, "sources.0.session_id"),
        ({"sources": [{"session_id": "s", "role": " "}]}, "sources.0.role"),
        ({"superseded_by": ["a", ""]}, "superseded_by.1"),
        ({"derived_from": ["a"] * 1001}, "derived_from"),
    ],
)
def test_a_value_that_could_not_be_stored_unchanged_is_refused_with_its_field(
    fields: dict[str, Any], field: str
) -> None:
    with pytest.raises(errors.Invalid) as error_info:
        parse(**fields)
    assert error_info.value.violations[0].field.removeprefix("Line.").startswith(field)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**53), 2**53)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=["Cs"])),
        lambda values: (
            st.lists(values, max_size=3)
            | st.dictionaries(
                st.sampled_from([*ndjson.MemoryLine.model_fields, "supersededBy", "archivedAt", "source"]),
                values,
                max_size=4,
            )
        ),
    )
)
def test_any_json_is_parsed_or_refused(value: Any) -> None:
    for document in (value, MINIMAL_LINE | value if isinstance(value, dict) else value):
        with contextlib.suppress(errors.Invalid):
            assert ndjson.parse_line(orjson.dumps(document)).content.strip()


@given(st.binary(max_size=50))
def test_arbitrary_bytes_are_refused(raw: bytes) -> None:
    with pytest.raises(errors.Invalid):
        ndjson.parse_line(raw)


@pytest.mark.parametrize("read", [ndjson.parse_line, partial(graph_lines.parse, graph_lines.EntityLine)])
def test_a_line_of_many_values_is_refused_before_it_is_parsed(read: Callable[[bytes], object]) -> None:
    line = b'{"id": "a", "content": [' + b"[]," * MAX_VALUES + b"[]]}"
    with pytest.raises(errors.TooLarge, match=f"at most {MAX_VALUES} JSON values"):
        read(line)
    with pytest.raises(errors.Invalid, match=r"content|kind"):
        read(b'{"id": "a", "content": ["' + b"," * MAX_VALUES + b'"]}')
