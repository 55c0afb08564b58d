"""Chunks are small enough, lose nothing, end where paragraphs end, and name their lines and pages."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.memory.documents.chunk import Chunk, chunk
from shared.memory.documents.parsed import Block

_LINES = st.lists(
    st.text(alphabet="ab. !\u3002\u00e9\t", min_size=1, max_size=60).map(str.strip).filter(bool),
    min_size=1,
    max_size=4,
)
_TEXTS = st.lists(st.tuples(_LINES, st.integers(0, 2)), max_size=12)
_SIZES = st.integers(2, 80).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))


def _blocks(texts: list[tuple[list[str], int]], page: int | None = None) -> list[Block]:
    """Return blocks with their lines, each so many empty lines after the one before."""
    blocks: list[Block] = []
    line = 1
    for lines, gap in texts:
        line += gap
        blocks.append(Block("\n".join(lines), page, line, line + len(lines) - 1))
        line += len(lines)
    return blocks


def _without_space(text: str) -> str:
    return "".join(text.split())


def _covers(text: str, chunks: list[Chunk], overlap: int) -> bool:
    """Tell whether the chunks are the text from start to end, each beginning at most `overlap` before."""
    ends = {0}
    for part in (_without_space(found.text) for found in chunks):
        starts = {max(end - repeated, 0) for end in ends for repeated in range(overlap + 1)}
        ends = {start + len(part) for start in starts if text.startswith(part, start)}
    return len(text) in ends


@given(_TEXTS, _SIZES)
def test_nothing_is_lost_and_no_chunk_is_too_long(
    texts: list[tuple[list[str], int]], sizes: tuple[int, int]
) -> None:
    size, overlap = sizes
    blocks = _blocks(texts)
    chunks = chunk(blocks, size, overlap)
    assert all(0 < len(part.text) <= size for part in chunks)
    assert [part.position for part in chunks] == list(range(len(chunks)))
    whole = _without_space("".join(block.text for block in blocks))
    assert _covers(whole, chunks, overlap) or whole == ""


@given(_TEXTS, _SIZES)
def test_a_chunk_stands_in_the_lines_that_it_names(
    texts: list[tuple[list[str], int]], sizes: tuple[int, int]
) -> None:
    blocks = _blocks(texts)
    line_by_number = {
        number: line
        for block in blocks
        for number, line in enumerate(block.text.split("\n"), start=block.line_from or 0)
    }
    chunks = chunk(blocks, *sizes)
    for part in chunks:
        first, last = part.text.split("\n")[0], part.text.split("\n")[-1]
        assert first in line_by_number[part.line_from or 0]
        assert last in line_by_number[part.line_to or 0]
    assert all((before.line_from or 0) <= (part.line_from or 0) for before, part in pairwise(chunks))


@given(st.lists(_TEXTS, max_size=3), _SIZES)
def test_no_chunk_spans_two_pages(pages: list[list[tuple[list[str], int]]], sizes: tuple[int, int]) -> None:
    blocks = [block for number, texts in enumerate(pages, start=1) for block in _blocks(texts, number)]
    chunks = chunk(blocks, *sizes)
    for number, texts in enumerate(pages, start=1):
        of_page = [part for part in chunks if part.page == number]
        whole = _without_space("".join(line for lines, _ in texts for line in lines))
        assert _covers(whole, of_page, sizes[1]) or whole == ""


def _texts(*texts: str, size: int, overlap: int = 0) -> list[str]:
    return [part.text for part in chunk([Block(text) for text in texts], size, overlap)]


def test_a_chunk_ends_where_a_paragraph_ends() -> None:
    assert _texts("One two.", "Three four.", "Five.", size=20) == ["One two.\nThree four.", "Five."]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("It is so. And so is that, too.", "It is so."),
        ("first line\nsecond line of it", "first line"),
        ("some words without any end", "some words"),
        ("x" * 20, "x" * 15),
        ("\u4e00\u4e8c\u3002\u4e09" * 6, ("\u4e00\u4e8c\u3002\u4e09" * 6)[:15]),
    ],
)
def test_a_paragraph_that_is_too_long_is_cut_after_a_sentence_a_line_or_a_word(text: str, first: str) -> None:
    assert _texts(text, size=15)[0] == first


def test_a_chunk_begins_with_the_last_sentence_or_paragraph_before_it() -> None:
    assert _texts("A long first one. It ends.", "Second paragraph.", size=30, overlap=12) == [
        "A long first one. It ends.",
        "It ends.\nSecond paragraph.",
    ]
    assert _texts("A long first paragraph", "short", "The second one", size=30, overlap=12)[1] == (
        "short\nThe second one"
    )


def test_less_is_repeated_if_the_next_paragraph_fits_whole_then() -> None:
    first, second = _texts("one two three four", "a paragraph of 25 letters", size=30, overlap=15)
    assert (first, second) == ("one two three four", "four\na paragraph of 25 letters")


def test_the_defaults_are_a_thousand_characters_of_which_150_are_repeated() -> None:
    words = [f"Word {number} of it." for number in range(400)]
    first, second, *_ = chunk([Block(" ".join(words))])
    repeated = first.text[first.text.index(second.text[:20]) :]
    assert 900 < len(first.text) <= 1000
    assert 100 < len(repeated) <= 150


def test_an_overlap_as_large_as_a_chunk_is_refused() -> None:
    with pytest.raises(ValueError, match="less than"):
        chunk([Block("text")], 10, 10)
