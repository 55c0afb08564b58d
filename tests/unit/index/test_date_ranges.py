"""The date ranges that a query names."""

from datetime import UTC, date, datetime

import pytest

from shared.search.ranking.date_ranges import DateRange, find_date_ranges

NOW = datetime(2024, 3, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ("on 8 May 2023", (2023, 5, 8), (2023, 5, 8)),
        ("on May 8th, 2023", (2023, 5, 8), (2023, 5, 8)),
        ("the 3rd of July 2022", (2022, 7, 3), (2022, 7, 3)),
        ("in February 2024", (2024, 2, 1), (2024, 2, 29)),
        ("until 2024-03-15?", (2024, 3, 15), (2024, 3, 15)),
        ("during 2021-12", (2021, 12, 1), (2021, 12, 31)),
        ("back in 2019", (2019, 1, 1), (2019, 12, 31)),
        ("what did I do yesterday", (2024, 3, 14), (2024, 3, 14)),
        ("two weeks ago", (2024, 2, 27), (2024, 3, 4)),
        ("last month", (2024, 2, 13), (2024, 3, 14)),
    ],
)
def test_a_date_range_is_found(query: str, first: tuple[int, int, int], last: tuple[int, int, int]) -> None:
    assert find_date_ranges(query, NOW) == [DateRange(date(*first), date(*last))]


@pytest.mark.parametrize(
    "query", ["may I ask", "march on", "31 February 2023", "2024-13-40", "room 2024", "no date", "yesterday"]
)
def test_other_words_and_relative_dates_without_now_are_ignored(query: str) -> None:
    assert find_date_ranges(query) == []


def test_closeness_is_one_within_the_range_and_halves_each_week() -> None:
    (date_range,) = find_date_ranges("in May 2023")
    assert date_range.closeness(date(2023, 5, 31)) == 1.0
    assert date_range.closeness(date(2023, 6, 7)) == pytest.approx(0.5)
    assert date_range.closeness(date(2022, 5, 10)) < 1e-6


def test_a_month_without_a_year_means_any_year() -> None:
    (date_range,) = find_date_ranges("what happened in December")
    for year in (2, 1999, 2023, 2024, 9997):
        assert date_range.closeness(date(year, 12, 24)) == 1.0
        assert date_range.closeness(date(year, 1, 7)) == pytest.approx(0.5, abs=0.06)
        assert date_range.closeness(date(year, 7, 1)) < 1e-5


def test_dates_at_the_ends_of_the_calendar_are_far_from_any_month() -> None:
    (date_range,) = find_date_ranges("on 29 February")
    for edge in (date(1, 1, 1), date(9999, 12, 31)):
        assert date_range.closeness(edge) < 0.01
