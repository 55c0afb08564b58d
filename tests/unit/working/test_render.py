"""What an agent reads about an entry: time left, inventory line, preview."""

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
def test_time_left_is_hours_and_minutes_or_minutes_and_seconds_or_seconds(seconds: float, text: str) -> None:
    assert render.format_ttl(seconds) == text


def _listing(**fields: object) -> WorkingEntryInfo:
    times = {"stored_at": STORED, "expires_at": STORED + timedelta(seconds=300), "remaining": 272.0}
    return WorkingEntryInfo.model_validate({"key": "session/abc/emails", **times, **fields})


def test_an_inventory_line_names_time_category_and_tags() -> None:
    full = _listing(category="email", tags=("inbox", "unread"))
    assert (
        render.inventory_line(full)
        == "- session/abc/emails: expires in 4m32s, category: email, tags: inbox, unread"
    )


def test_an_inventory_line_leaves_out_what_is_not_there() -> None:
    assert render.inventory_line(_listing()) == "- session/abc/emails: expires in 4m32s"


def test_an_entry_answers_with_the_fields_of_the_contract_only() -> None:
    entry = WorkingEntry(value="v", large=True, **_listing().model_dump(), remaining=1.0)
    assert set(entry.model_dump()) == {"key", "value", "stored_at", "expires_at", "category", "tags"}


def test_a_preview_is_one_line_of_at_most_120_characters() -> None:
    assert preview(" two\n\nwords\t here ") == "two words here"
    assert preview("x" * 120) == "x" * 120
    assert preview("x" * 121) == "x" * 119 + "…"
    assert preview("\n" * 10_000 + "late") == "late"
    assert preview("") == ""
