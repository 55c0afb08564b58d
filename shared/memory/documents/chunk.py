"""Cut the blocks of a document into chunks, the records that a search finds and cites.

A chunk ends where a block ends. Only a block that is longer than a chunk is cut inside: after a sentence,
else after a line, else after a word, else anywhere. The next chunk begins with the end of the one before,
from a sentence or a word on, so that a statement at a border is found with what it refers to. It begins with
less if the whole next block fits then. A chunk never spans two pages: its citation names one.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from shared.foundation import validation
from shared.memory.documents.parsed import PARSER_VERSION, Block

_SENTENCE_END = re.compile("[.!?\u2026][\"')\\]\u00bb\u201d\u2019]*\\s+|[\u3002\uff01\uff1f]\\s*")
_LINE_END = re.compile(r"\n")
_WORD_END = re.compile(r"\s+")
_LONGEST_END = 3
"""Characters that the end of a sentence has at most: a full stop, a quotation mark and a space."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document's text. `position` counts from 0; lines and pages are those of its blocks."""

    text: str
    position: int
    page: int | None
    line_from: int | None
    line_to: int | None


def chunk(blocks: Sequence[Block], size: int = 1000, overlap: int = 150) -> list[Chunk]:
    """Return the chunks of a document: at most `size` characters each, of which `overlap` may be repeated.

    Every character of the blocks is in a chunk, except white space at its ends. Raises ValueError unless
    0 <= overlap < size.
    """
    if not 0 <= overlap < size:
        raise ValueError("the overlap of chunks must be less than their size")
    chunks: list[Chunk] = []
    for page, group in groupby(blocks, key=attrgetter("page")):
        text = _PageText([block for block in group if not validation.is_blank(block.text)])
        for begin, end in text.cut(size, overlap):
            lines = text.line_of(begin), text.last_line_of(end)
            chunks.append(Chunk(text.text[begin:end], len(chunks), page, *lines))
    return chunks


def method_of(size: int, overlap: int) -> str:
    """Return what decides about the chunks of a file, so that a change of it is noticed."""
    return f"parser {PARSER_VERSION}, {size}/{overlap}"


class _PageText:
    """The text of the blocks of one page, or of a whole document without pages."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = blocks
        self._starts: list[int] = []
        self._ends: list[int] = []
        parts: list[str] = []
        length = 0
        for before, block in zip([None, *blocks], blocks, strict=False):
            separator = _separator(before, block)
            self._starts.append(length + len(separator))
            length = self._starts[-1] + len(block.text)
            self._ends.append(length)
            parts += [separator, block.text]
        self.text = "".join(parts)
        self._line_ends = [match.start() for match in _LINE_END.finditer(self.text)]

    def cut(self, size: int, overlap: int) -> Iterator[tuple[int, int]]:
        """Yield where each chunk begins and ends, without white space around it."""
        start = 0
        while start < len(self.text):
            begin = self._repeat_from(start, size, overlap) if start else 0
            end = self._end_of_chunk(start, begin + size)
            if not validation.is_blank(self.text[start:end]):
                yield self._without_space(begin, end)
            start = end

    def _repeat_from(self, start: int, size: int, overlap: int) -> int:
        """Return where the chunk whose new text starts at `start` begins: at most `overlap` before it."""
        block_end = self._ends[bisect_right(self._ends, start)]
        fits_whole = block_end - start <= size
        earliest = max(start - overlap, block_end - size if fits_whole else 0, 0)
        repeatable_end = earliest + len(self.text[earliest:start].rstrip())
        next_block = bisect_left(self._starts, earliest)
        borders = self._starts[next_block : next_block + 1]
        borders += _first_border(_SENTENCE_END, self.text, earliest, repeatable_end)
        if min(borders, default=start) >= repeatable_end:
            borders = _first_border(_WORD_END, self.text, earliest, repeatable_end)
        # A script without spaces has no borders of words: to begin anywhere is better than to repeat nothing.
        return min(borders, default=earliest if start - earliest == overlap else start)

    def _end_of_chunk(self, start: int, limit: int) -> int:
        """Return where the chunk whose new text starts at `start` ends: the start of the next one."""
        blocks_whole = bisect_right(self._ends, limit)
        if blocks_whole == len(self._ends):
            return len(self.text)
        if blocks_whole and self._starts[blocks_whole] > start:
            return self._starts[blocks_whole]
        for pattern in (_SENTENCE_END, _LINE_END, _WORD_END):
            borders = [match.end() for match in pattern.finditer(self.text, start, limit)]
            if borders:
                return borders[-1]
        return limit

    def _without_space(self, begin: int, end: int) -> tuple[int, int]:
        part = self.text[begin:end]
        return end - len(part.lstrip()), begin + len(part.rstrip())

    def line_of(self, offset: int) -> int | None:
        """Return the line that the text at an offset stands in, or the first of its block's lines."""
        return self._line(offset, attrgetter("line_from"))

    def last_line_of(self, end: int) -> int | None:
        """Return the line that the text before `end` stands in, or the last of its block's lines."""
        return self._line(end - 1, attrgetter("line_to"))

    def _line(self, offset: int, otherwise: Callable[[Block], int | None]) -> int | None:
        index = bisect_right(self._starts, offset) - 1
        block = self._blocks[index]
        if block.line_from is None or block.line_to is None:
            return otherwise(block)
        lines_before_block = self._lines_until(self._starts[index])
        lines_in_block = self._lines_until(self._ends[index]) - lines_before_block
        has_all_lines = lines_in_block == block.line_to - block.line_from
        line = block.line_from + self._lines_until(offset) - lines_before_block
        return line if has_all_lines else otherwise(block)

    def _lines_until(self, offset: int) -> int:
        return bisect_left(self._line_ends, offset)


def _separator(before: Block | None, block: Block) -> str:
    """Return what stands between two blocks: an empty line if there was something between them."""
    if before is None:
        return ""
    if before.line_to is None or block.line_from is None:
        return "\n"
    return "\n\n" if block.line_from - before.line_to > 1 else "\n"


def _first_border(pattern: re.Pattern[str], text: str, start: int, end: int) -> list[int]:
    """Return the first border from `start` on as a list, which is empty if there is none before `end`."""
    matches = pattern.finditer(text, max(start - _LONGEST_END, 0), end)
    return [match.end() for match in matches if match.end() >= start][:1]
