"""A line is read generously by name, strictly by value, and never half."""

import contextlib
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.foundation import errors
from shared.foundation.stages import MemoryState
from shared.lifecycle.transfer import ndjson

LEAST: dict[str, Any] = {"id": "00000000ada0", "content": "x"}


def parse(**fields: Any) -> ndjson.MemoryLine:
    return ndjson.parse_line(orjson.dumps(LEAST | fields))


@pytest.mark.parametrize(
    ("camel", "ours", "value"),
    [
        ("createdAt", "created_at", "2026-01-02T03:04:05Z"),
        ("importanceScore", "importance", 0.25),
        ("reinforcementCount", "reinforcement_count", 2),
        ("archiveReason", "archive_reason", "old"),
    ],
)
def test_keys_may_be_those_of_loci_or_camel_case(camel: str, ours: str, value: object) -> None:
    assert getattr(parse(**{camel: value}), ours) == getattr(parse(**{ours: value}), ours)
    assert ours in parse(**{camel: value}).model_fields_set


def test_times_without_a_zone_are_utc_and_finer_than_a_microsecond_are_cut() -> None:
    moment = parse(occurred_at="2026-02-25T10:11:12.1234567").occurred_at
    assert moment is not None
    assert moment.isoformat() == "2026-02-25T10:11:12.123456+00:00"


@pytest.mark.parametrize("name", ["tags", "metadata", "importance", "superseded_by", "lastSeenAt", "state"])
def test_null_in_a_field_that_is_never_null_counts_as_absent(name: str) -> None:
    assert parse(**{name: None}).model_fields_set == {"id", "content"}


def test_null_in_a_field_that_may_be_null_counts_as_named() -> None:
    assert "category" in parse(category=None).model_fields_set


def test_a_line_with_a_time_of_archiving_is_archived() -> None:
    assert parse(archived_at="2026-01-02T03:04:05Z").state is MemoryState.ARCHIVED


def test_a_line_with_a_live_state_names_that_it_is_not_archived() -> None:
    assert "archived_at" in parse(state="final").model_fields_set


def test_a_single_source_is_a_list_of_one() -> None:
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
def test_a_value_that_could_not_be_stored_unchanged_is_refused_by_field(
    fields: dict[str, Any], field: str
) -> None:
    with pytest.raises(errors.Invalid) as caught:
        parse(**fields)
    assert caught.value.violations[0].field.removeprefix("Line.").startswith(field)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**53), 2**53)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=["Cs"])),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from([*ndjson.MemoryLine.model_fields, "supersededBy", "archivedAt", "source"]),
                inner,
                max_size=4,
            )
        ),
    )
)
def test_any_json_at_all_is_read_or_refused(value: Any) -> None:
    for raw_lines in (value, LEAST | value if isinstance(value, dict) else value):
        with contextlib.suppress(errors.Invalid):
            assert ndjson.parse_line(orjson.dumps(raw_lines)).content.strip()


@given(st.binary(max_size=50))
def test_any_bytes_at_all_are_refused(raw: bytes) -> None:
    with pytest.raises(errors.Invalid):
        ndjson.parse_line(raw)
