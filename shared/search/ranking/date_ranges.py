"""Find the ranges of days that a query names: "on 8 May 2023", "in July", "2024-03-15", "two weeks ago".

English month names and ISO dates are recognised. "may" and "march" are also other words, so they count
only next to a number or a preposition. A month without a year means that month of any year.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, date, datetime, timedelta

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMED = re.compile(
    r"""(?:\b(?P<before>\d{1,2})(?:st|nd|rd|th)?\s+(?:of\s+)?
          |\b(?P<lead>in|of|on|by|since|until|during|before|after|around|early|late|mid|this|last)\s+)?
    \b(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?
          |sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?
    (?:\s+(?P<after>\d{1,2})(?:st|nd|rd|th)?\b)?(?:,?\s+(?P<year>(?:19|20)\d\d)\b)?""",
    re.IGNORECASE | re.VERBOSE,
)
_ALSO_OTHER_WORDS = frozenset({"may", "march", "mar"})
_ISO = re.compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2}))?\b")
_YEAR = re.compile(r"\b(?:in|of|since|during)\s+(?P<year>(?:19|20)\d\d)\b(?!-)", re.IGNORECASE)
_AGO = re.compile(
    r"\b(?P<count>\d{1,2}|an?|one|two|three|four|five|six) (?P<unit>day|week|month|year)s? ago\b",
    re.IGNORECASE,
)
_RELATIVE = re.compile(
    r"\b(?:(?P<day>today|yesterday)|(?P<which>this|last|past) (?P<unit>week|month|year))\b", re.IGNORECASE
)
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_LEAP_YEAR = 2024  # 29 February must exist for a date without a year
_HALF_LIFE_DAYS = 7.0


@dataclass(frozen=True, slots=True)
class DateRange:
    """A range of days, both ends included; with `any_year`, the year is ignored."""

    first: date
    last: date
    any_year: bool = False

    def closeness(self, day: date) -> float:
        """Return 1 within the range, and half as much for each week of distance from it."""
        # A date may lie near the ends of the calendar, but the years beyond them do not exist.
        year = min(max(day.year, MINYEAR + 1), MAXYEAR - 2)
        ranges = [_in_year(self, year + step) for step in (-1, 0, 1)] if self.any_year else [self]
        distance = min(max((span.first - day).days, (day - span.last).days, 0) for span in ranges)
        return float(0.5 ** (distance / _HALF_LIFE_DAYS))


def find_date_ranges(query: str, now: datetime | None = None) -> list[DateRange]:
    """Return the ranges that a query names; relative ones, such as "yesterday", only with `now`."""
    absolute = [*_iso_ranges(query), *_month_ranges(query)] or list(_year_ranges(query))
    return absolute if now is None else [*absolute, *_relative_ranges(query, now.date())]


def _iso_ranges(query: str) -> Iterator[DateRange]:
    for match in _ISO.finditer(query):
        yield from _ranges_of_date(int(match["year"]), int(match["month"]), int(match["day"] or 0))


def _month_ranges(query: str) -> Iterator[DateRange]:
    for match in _NAMED.finditer(query):
        is_date = match["lead"] or match["before"] or match["after"] or match["year"]
        if match["month"].lower() in _ALSO_OTHER_WORDS and not is_date:
            continue
        month = _MONTHS.index(match["month"][:3].lower()) + 1
        yield from _ranges_of_date(
            int(match["year"] or 0), month, int(match["before"] or match["after"] or 0)
        )


def _year_ranges(query: str) -> Iterator[DateRange]:
    for match in _YEAR.finditer(query):
        yield DateRange(date(int(match["year"]), 1, 1), date(int(match["year"]), 12, 31))


def _ranges_of_date(year: int, month: int, day: int) -> Iterator[DateRange]:
    """Yield the range of a day, or of the month if `day` is 0; if `year` is 0, of any year.

    A date that does not exist yields nothing.
    """
    try:
        first = date(year or _LEAP_YEAR, month, day or 1)
    except ValueError:
        return
    last = first if day else _month_end(first)
    yield DateRange(first, last, any_year=not year)


def _month_end(first: date) -> date:
    return (first.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)


def _relative_ranges(query: str, today: date) -> Iterator[DateRange]:
    for ago in _AGO.finditer(query):
        count = _COUNTS.get(ago["count"].lower()) or int(ago["count"])
        unit = _UNIT_DAYS[ago["unit"].lower()]
        yield _days_around(today - timedelta(days=count * unit), unit // 2)
    for match in _RELATIVE.finditer(query):
        if match["day"]:
            yield _days_around(today - timedelta(days=match["day"].lower() == "yesterday"), 0)
            continue
        unit = _UNIT_DAYS[match["unit"].lower()]
        end = today if match["which"].lower() != "last" else today - timedelta(days=1)
        yield DateRange(end - timedelta(days=unit), end)


def _in_year(date_range: DateRange, year: int) -> DateRange:
    first = date(year, date_range.first.month, 1) + timedelta(days=date_range.first.day - 1)
    return DateRange(first, first + (date_range.last - date_range.first))


def _days_around(day: date, distance: int) -> DateRange:
    return DateRange(day - timedelta(days=distance), day + timedelta(days=distance))
