"""Working-memory entries as text for an agent: remaining time, inventory line and preview."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.memory.working import render
from shared.memory.working.render import preview
from shared.memory.working.working_entry import WorkingEntry, WorkingEntryInfo

STORED = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (4 * 3600 + 12 * 60, "4h12m"),
        (272, "4m32s"),
        (121, "2m01s"),
        (45, "45s"),
        (3600, "1h00m"),
        (3599.2, "1h00m"),
        (299.97, "5m00s"),
        (60, "1m00s"),
        (59, "59s"),
        (0.01, "1s"),
        (0, "0s"),
        (-3, "0s"),
        (100 * 3600 + 59, "100h00m"),
    ],
)
def test_remaining_time_is_shown_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert render.format_ttl(seconds) == text


def _entry_info(**fields: object) -> WorkingEntryInfo:
    times = {
        "stored_at": STORED,
        "expires_at": STORED + timedelta(seconds=300),
        "remaining": 272.0,
        "version": 1,
    }
    return WorkingEntryInfo.model_validate({"key": "session/abc/emails", **times, **fields})


def test_an_inventory_line_names_time_category_and_tags() -> None:
    entry_info = _entry_info(category="email", tags=("inbox", "unread"))
    assert (
        render.inventory_line(entry_info)
        == "- session/abc/emails: expires in 4m32s, category: email, tags: inbox, unread"
    )


def test_an_inventory_line_leaves_out_missing_fields() -> None:
    assert render.inventory_line(_entry_info()) == "- session/abc/emails: expires in 4m32s"


def test_an_entry_is_serialised_with_its_published_fields_only() -> None:
    entry = WorkingEntry(value="v", large=True, **_entry_info().model_dump(), remaining=1.0)
    published = {"key", "value", "stored_at", "expires_at", "category", "tags", "version", "origin"}
    assert set(entry.model_dump()) == published


def test_a_preview_is_one_line_of_at_most_120_characters() -> None:
    assert preview(" two\n\nwords\t here ") == "two words here"
    assert preview("x" * 120) == "x" * 120
    assert preview("x" * 121) == "x" * 119 + "…"
    assert preview("\n" * 10_000 + "late") == "late"
    assert preview("") == ""
