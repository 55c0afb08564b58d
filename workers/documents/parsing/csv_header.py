"""Find out whether the first row of a table names its columns, by what stands below each of its cells.

A column says yes if its first cell is a word above numbers, dates or the like (cells whose first letter or
digit is a digit), if each other cell of at least two is a text of several words more than twice as long as
it, or if of at least four each occurs again and only the first does not. It says no if the first cell is of
that kind itself, or occurs again below. A year above what is no year says nothing; two and more that rise
evenly say yes. Blank cells, and words for what is missing, say nothing either.

The row names the columns if more of them say yes than no. If none says anything, because all are words, it
does if its words are written as in no other row (all lower-case, all in capitals, or with `_`), or if two
rows and more are below it, as most files have names: `Name,Town` is not distinguished from `Bob,Paris`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest

_MOSTLY = 0.8
_MISSING = frozenset(["n/a", "na", "nan", "null", "none", "nil", "nat"])
_YEARS = range(1900, 2101)
_MIN_TEXTS = 2
_MIN_ROWS = 2
_MIN_REPEATED = 4


def is_title(cells: Sequence[str]) -> bool:
    """Return whether a row has its first cell alone."""
    return bool(cells[0]) and not any(cells[1:])


def is_value(cell: str) -> bool:
    """Return whether a cell is a number, a date, an amount or the like."""
    return next((character.isdigit() for character in cell if character.isalnum()), False)


def is_word(cell: str) -> bool:
    """Return whether a cell is a word or a text, and no word for what is missing."""
    first = next((character for character in cell if character.isalnum()), "0")
    return not first.isdigit() and cell.lower() not in _MISSING


def is_header(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first of some rows names the columns of the others."""
    if len(rows) < 2:
        return False
    first, *others = rows
    votes = [_vote(column[0], list(filter(_says, column[1:]))) for column in _columns(first, others)]
    votes.append(_has_rising_years(first, others))
    if any(votes):
        return sum(votes) > 0
    ways = _writing(first)
    is_written_otherwise = ways is not None and all(_writing(row) != ways for row in others)
    return is_written_otherwise or (len(others) >= _MIN_ROWS and all(map(is_word, first)))


def _columns(first: Sequence[str], others: Sequence[Sequence[str]]) -> Iterator[tuple[str, ...]]:
    yield from list(zip_longest(first, *others, fillvalue=""))[: len(first)]


def _says(cell: str) -> bool:
    return is_value(cell) or is_word(cell)


def _vote(first: str, others: Sequence[str]) -> int:
    """Return 1 if a column says that its first cell is its name, -1 if it says that it is none, else 0."""
    if not others or not _says(first):
        return 0
    are_values = sum(map(is_value, others)) >= _MOSTLY * len(others)
    if is_word(first):
        if first in others:
            return -1
        return int(are_values or _is_short_above(first, others) or _all_repeat(others))
    if _is_year(first) and not all(map(_is_year, others)):
        return 0
    return -1 if are_values else 0


def _is_short_above(first: str, others: Sequence[str]) -> bool:
    are_texts = all(" " in cell and len(cell) > 2 * len(first) for cell in others)
    return are_texts and len(others) >= _MIN_TEXTS


def _all_repeat(others: Sequence[str]) -> bool:
    return len(others) >= _MIN_REPEATED and min(Counter(others).values()) > 1


def _is_year(cell: str) -> bool:
    return len(cell) == 4 and cell.isdecimal() and int(cell) in _YEARS


def _has_rising_years(first: Sequence[str], others: Sequence[Sequence[str]]) -> int:
    columns = [number for number, cell in enumerate(first) if _is_year(cell)]
    steps = {int(first[right]) - int(first[left]) for left, right in pairwise(columns)}
    below = [row[number] for row in others for number in columns if number < len(row)]
    return int(len(steps) == 1 and min(steps) > 0 and not all(map(_is_year, filter(None, below))))


def _writing(row: Sequence[str]) -> str | None:
    """Return how all words of a row are written if that is as names of columns often are."""
    words = [cell for cell in row if is_word(cell)]
    if not words or not all(any(letter.isalpha() for letter in word) for word in words):
        return None
    if any("_" in word for word in words) and not any(" " in word for word in words):
        return "_"
    return next((way for way in ("islower", "isupper") if all(getattr(word, way)() for word in words)), None)
