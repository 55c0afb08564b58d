"""The days that a text speaks of without a whole date: "tomorrow", "next Tuesday", "12 May".

What retells a text puts dates in their place, counted from the dates on which the text was written. It
invents nothing by that.
"""

import re
from collections.abc import Collection, Iterator
from datetime import date, timedelta

from shared.language.specifics import ParsedText

_WEEKDAYS = (
    "monday mon montag montags lundi lunes lunedì segunda maandag понедельник måndag mandag poniedziałek",
    "tuesday tue tues dienstag dienstags mardi martes martedì terça dinsdag вторник tisdag tirsdag wtorek",
    (
        "wednesday wed mittwoch mittwochs mercredi miércoles mercoledì quarta woensdag среда среду "
        "onsdag środa środę"
    ),
    (
        "thursday thu thur thurs donnerstag donnerstags jeudi jueves giovedì quinta donderdag четверг "
        "torsdag czwartek"
    ),
    "friday fri freitag freitags vendredi viernes venerdì sexta vrijdag пятница пятницу fredag piątek piątki",
    (
        "saturday sat samstag samstags sonnabend samedi sábado sabato zaterdag суббота субботу "
        "lördag lørdag sobota sobotę"
    ),
    (
        "sunday sun sonntag sonntags dimanche domingo domenica zondag воскресенье "
        "söndag søndag niedziela niedzielę"
    ),
)
_WEEKDAY_NAMES = tuple(frozenset(names.split()) for names in _WEEKDAYS)
_MONTHS = (
    "january jan januar janvier enero gennaio janeiro januari января",
    "february feb februar février febrero febbraio fevereiro februari февраля",
    "march mar märz mars marzo março maart марта",
    "april apr avril abril aprile апреля",
    "may mai mayo maggio maio mei мая maj",
    "june jun juni juin junio giugno junho июня",
    "july jul juli juillet julio luglio julho июля",
    "august aug août agosto augustus августа augusti",
    "september sep sept septembre septiembre settembre setembro сентября",
    "october oct oktober octobre octubre ottobre outubro октября",
    "november nov novembre noviembre novembro ноября",
    "december dec dezember décembre diciembre dicembre dezembro декабря",
)
_MONTH_NAMES = tuple(frozenset(names.split()) for names in _MONTHS)
ALL_NAMES = frozenset[str]().union(*_WEEKDAY_NAMES, *_MONTH_NAMES)
_OFFSETS = {
    -2: "vorgestern anteayer",
    -1: "yesterday last gestern hier ayer ieri ontem gisteren вчера",
    0: "today tonight now just this heute jetzt aujourd'hui hoy oggi hoje vandaag сегодня",
    1: "tomorrow morgen demain mañana domani amanhã завтра",
    2: "übermorgen",
}
_WORD_OFFSETS = {word: offset for offset, words in _OFFSETS.items() for word in words.split()}
_AFTER = re.compile(r"\b(?:in|after|nach)\s+(\w+)\s+(days?|weeks?|tagen?|wochen?)\b")
_AGO = re.compile(r"\b(\w+)\s+(days?|weeks?)\s+ago\b|\bvor\s+(\w+)\s+(tagen?|wochen?)\b")
_DAY_AFTER, _DAY_BEFORE = "day after tomorrow", "day before yesterday"
_NUMBERS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "ten": 10}
_NUMBERS |= {"einem": 1, "einer": 1, "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "sieben": 7}
_NEAR_DAYS = 14


def add_meant_days(shown: ParsedText, written_on: Collection[date]) -> None:
    """Add the days that a text may mean, counted from its dates, and the names of their weekdays."""
    _add_other_names(shown)
    for written_date in written_on:
        meant_days = {
            written_date,
            *_relative_days(written_date, shown),
            *_days_without_year(written_date, shown),
        }
        shown.days |= {day.isoformat() for day in meant_days}
    for day in map(date.fromisoformat, sorted(shown.days)):
        shown.words |= _WEEKDAY_NAMES[day.weekday()] | _MONTH_NAMES[day.month - 1]


def add_near_years(shown: ParsedText, written_on: Collection[date]) -> None:
    """Add the years that a text without a year may mean: that of its dates, and those before and after."""
    for year in {written.year + offset for written in written_on for offset in (-1, 0, 1)}:
        shown.numbers.setdefault(str(year), set()).update(("", "year"))


def _add_other_names(parsed: ParsedText) -> None:
    """Add the other names of the weekdays and months that a text names: Nov is November."""
    for names in (*_WEEKDAY_NAMES, *_MONTH_NAMES):
        if not names.isdisjoint(parsed.capitals):
            parsed.words |= names
            parsed.capitals |= names


def _relative_days(written_date: date, shown: ParsedText) -> Iterator[date]:
    """Yield the days that a text means, counted from a date; a day that no calendar has is none."""
    for distance in _distances(written_date, shown):
        try:
            yield written_date + distance
        except OverflowError:
            continue


def _distances(written_date: date, shown: ParsedText) -> Iterator[timedelta]:
    for word in shown.words & _WORD_OFFSETS.keys():
        yield timedelta(_WORD_OFFSETS[word])
    if _DAY_AFTER in shown.text:
        yield timedelta(2)
    if _DAY_BEFORE in shown.text:
        yield timedelta(-2)
    for match in _AFTER.finditer(shown.text):
        yield _distance(match[1], match[2])
    for match in _AGO.finditer(shown.text):
        yield -_distance(match[1] or match[3], match[2] or match[4])
    for weekday, names in enumerate(_WEEKDAY_NAMES):
        if not names.isdisjoint(shown.words):
            near_distances = range(-_NEAR_DAYS, _NEAR_DAYS + 1)
            yield from (timedelta(n) for n in near_distances if (written_date.weekday() + n) % 7 == weekday)


def _distance(count: str, unit: str) -> timedelta:
    number = int(count) if count.isdecimal() and len(count) < 4 else _NUMBERS.get(count, 0)
    return timedelta(number * (7 if unit.startswith("w") else 1))


def _days_without_year(written_date: date, shown: ParsedText) -> Iterator[date]:
    """Yield the dates that a day and a month of a text may be in the years around it."""
    for month, names in enumerate(_MONTH_NAMES, start=1):
        if names.isdisjoint(shown.words):
            continue
        for number in shown.numbers:
            for year in (written_date.year - 1, written_date.year, written_date.year + 1):
                if number.isdecimal() and 1 <= int(number) <= 31:
                    yield from _valid_date(year, month, int(number))


def _valid_date(year: int, month: int, day: int) -> Iterator[date]:
    try:
        yield date(year, month, day)
    except ValueError:
        return
