"""The spans of days that a question names: "on 8 May 2023", "in July", "2024-03-15", "two weeks ago".

English month names and ISO dates. "may" and "march" are words of their own, so they count only beside
a number or a preposition. A month without a year means that month of any year.
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
_ALSO_WORDS = frozenset({"may", "march", "mar"})
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
_LEAP_YEAR = 2024  # so that 29 February can be named without a year
_HALF_LIFE_DAYS = 7.0


@dataclass(frozen=True, slots=True)
class DateRange:
    """A span of days, both ends included; with `any_year` its year does not count."""

    first: date
    last: date
    any_year: bool = False

    def closeness(self, at: datetime) -> float:
        """Return 1 within the period, and half of that for each week away from it."""
        day = at.date()
        # Dates near the ends of the calendar are legal; a year beyond them is not.
        year = min(max(day.year, MINYEAR + 1), MAXYEAR - 2)
        spans = [_in_year(self, year + step) for step in (-1, 0, 1)] if self.any_year else [self]
        away = min(max((span.first - day).days, (day - span.last).days, 0) for span in spans)
        return float(0.5 ** (away / _HALF_LIFE_DAYS))


def find_date_ranges(query: str, now: datetime | None = None) -> list[DateRange]:
    """Return the periods that the query names; relative ones only if `now` is known."""
    exact = [*_iso(query), *_months(query)] or list(_years(query))
    return exact if now is None else [*exact, *_relative(query, now.date())]


def _iso(query: str) -> Iterator[DateRange]:
    for found in _ISO.finditer(query):
        yield from _span(int(found["year"]), int(found["month"]), int(found["day"] or 0))


def _months(query: str) -> Iterator[DateRange]:
    for found in _NAMED.finditer(query):
        telling = found["lead"] or found["before"] or found["after"] or found["year"]
        if found["month"].lower() in _ALSO_WORDS and not telling:
            continue
        month = _MONTHS.index(found["month"][:3].lower()) + 1
        yield from _span(int(found["year"] or 0), month, int(found["before"] or found["after"] or 0))


def _years(query: str) -> Iterator[DateRange]:
    for found in _YEAR.finditer(query):
        yield DateRange(date(int(found["year"]), 1, 1), date(int(found["year"]), 12, 31))


def _span(year: int, month: int, day: int) -> Iterator[DateRange]:
    """Yield the day, or the month if `day` is 0, of the year, or of any if `year` is 0; nothing if absurd."""
    try:
        first = date(year or _LEAP_YEAR, month, day or 1)
    except ValueError:
        return
    last = first if day else _month_end(first)
    yield DateRange(first, last, any_year=not year)


def _month_end(first: date) -> date:
    return (first.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)


def _relative(query: str, today: date) -> Iterator[DateRange]:
    for ago in _AGO.finditer(query):
        count = _COUNTS.get(ago["count"].lower()) or int(ago["count"])
        unit = _UNIT_DAYS[ago["unit"].lower()]
        yield _around(today - timedelta(days=count * unit), unit // 2)
    for found in _RELATIVE.finditer(query):
        if found["day"]:
            yield _around(today - timedelta(days=found["day"].lower() == "yesterday"), 0)
            continue
        unit = _UNIT_DAYS[found["unit"].lower()]
        end = today if found["which"].lower() != "last" else today - timedelta(days=1)
        yield DateRange(end - timedelta(days=unit), end)


def _in_year(period: DateRange, year: int) -> DateRange:
    first = date(year, period.first.month, 1) + timedelta(days=period.first.day - 1)
    return DateRange(first, first + (period.last - period.first))


def _around(day: date, slack: int) -> DateRange:
    return DateRange(day - timedelta(days=slack), day + timedelta(days=slack))
