"""Read CSV: a block is a row, with the name of its column before each cell.

A row is found and understood without the one that names the columns, which usually lies in another chunk.
But a wrong name says what is in no file, so rows have names only if their first row looks like none of
the others (`csv_header`). Lines above the table whose only cell is the first one, such as a title, are no
part of it.

A name is cut at 60 characters, and a row has no names if they take more than a chunk of the usual size and
three times what the row says; neither has any row of a file that would hold more text than is stored. A
column whose name is blank has none, and of columns that are named alike each has the name.

The delimiter of a file is the one with which most of its rows have the same number of cells. A file of one
column is read as rows if numbers, dates or the like stand below a word; otherwise it is plain text.
"""

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import dropwhile, islice, zip_longest

from shared.memory.documents.parsed import Block
from workers.documents.parsing.csv_header import is_header, is_title, is_value, is_word
from workers.documents.parsing.limits import MAX_TEXT_BYTES
from workers.documents.parsing.text import lines_of, paragraphs

_SAMPLE_CHARACTERS = 8192
_SAMPLE_ROWS = 200
_DELIMITERS = ",;\t|"
_ALIKE_SHARE = 0.75
"""The share of rows that have the same number of cells if a delimiter is the right one."""
_MAX_NAME_CHARACTERS = 60
_MAX_NAMES_CHARACTERS = 1000
_MAX_NAMES_PER_TEXT = 3
_Row = tuple[list[str], int, int]


def read_csv(text: str) -> tuple[Block, ...]:
    """Return the rows with their lines; what can't be read as CSV is read as plain text."""
    lines = lines_of(text)
    try:
        delimiter = _find_delimiter(lines, text)
        rows = list(_rows(lines, delimiter or ","))
    except csv.Error:
        return tuple(paragraphs(lines))
    if delimiter is None and not _is_column(rows):
        return tuple(paragraphs(lines))
    first = next((number for number, row in enumerate(rows) if not is_title(row[0])), 0) if delimiter else 0
    sample = [row[0] for row in rows[first : first + _SAMPLE_ROWS]]
    names = [_short(name) for name in sample[0]] if is_header(sample) else []
    blocks = tuple(_blocks(rows, names, first))
    is_too_much = sum(len(block.text.encode()) for block in blocks) > MAX_TEXT_BYTES
    return tuple(_blocks(rows, [], first)) if is_too_much else blocks


def _find_delimiter(lines: Sequence[str], text: str) -> str | None:
    """Return what separates the cells, or None if nothing does. Raises csv.Error if that is unclear."""
    found = max(filter(None, (_fit(lines, delimiter) for delimiter in _DELIMITERS)), default=None)
    if found is not None:
        return found[2]
    if len(lines) > 1 and any(delimiter in text[:_SAMPLE_CHARACTERS] for delimiter in _DELIMITERS):
        return csv.Sniffer().sniff(text[:_SAMPLE_CHARACTERS], _DELIMITERS).delimiter
    return None


def _fit(lines: Sequence[str], delimiter: str) -> tuple[float, int, str] | None:
    """Return the share of rows with the same number of cells, and that number, if the delimiter fits."""
    try:
        sample = [cells for cells, _, _ in islice(_rows(lines, delimiter), _SAMPLE_ROWS)]
    except csv.Error:  # a cell that is longer than any
        return None
    rows = list(dropwhile(is_title, sample))
    width, count = Counter(map(len, rows)).most_common(1)[0] if rows else (1, 0)
    is_enough = count >= _ALIKE_SHARE * len(rows) and (count > 1 or len(rows) == len(sample))
    return (count / len(rows), width, delimiter) if width > 1 and is_enough else None


def _rows(lines: Sequence[str], delimiter: str) -> Iterator[_Row]:
    """Yield the cells of each row that is not empty, with its first and its last line."""
    reader = csv.reader(
        (f"{line}\n" for line in lines), delimiter=delimiter, skipinitialspace=delimiter != "\t"
    )
    last_line = 0
    for cells in reader:
        first_line, last_line = last_line + 1, reader.line_num
        if any(cell.strip() for cell in cells):
            yield [" ".join(cell.split()) for cell in cells], first_line, last_line


def _is_column(rows: Sequence[_Row]) -> bool:
    """Return whether a file without a delimiter is a column of numbers, dates or the like below a word."""
    cells = [" ".join(row[0]) for row in rows]
    return len(cells) > 1 and is_word(cells[0]) and all(map(is_value, cells[1:]))


def _short(name: str) -> str:
    is_long = len(name) > _MAX_NAME_CHARACTERS
    return name[: _MAX_NAME_CHARACTERS - 1].rstrip() + "…" if is_long else name


def _blocks(rows: Sequence[_Row], names: Sequence[str], header: int) -> Iterator[Block]:
    for number, (cells, first_line, last_line) in enumerate(rows):
        row_names = names if number > header else []
        yield Block(_row_text(row_names, cells), None, first_line, last_line)


def _row_text(names: Sequence[str], cells: Sequence[str]) -> str:
    pairs = [(name, cell) for name, cell in zip_longest(names[: len(cells)], cells, fillvalue="") if cell]
    most = max(_MAX_NAMES_CHARACTERS, _MAX_NAMES_PER_TEXT * sum(len(cell) for _, cell in pairs))
    has_names = sum(len(name) for name, _ in pairs) <= most
    return " | ".join(f"{name}: {cell}" if name and has_names else cell for name, cell in pairs)
