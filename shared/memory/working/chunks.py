"""Split a large value into chunks, and write the outline that names them.

A value is split at its Markdown headings of level 1 to 3, a section that is too long at blank lines,
and a paragraph that is too long at the limit. The joined chunks are the value again, character by
character. A heading inside a code fence is code. Short sections are not merged into longer chunks, so
that an agent finds a section under its own name.

Chunks and outline are computed from the value on every read and never stored. So they cannot outlive
it, differ from it, or count against the limit of a namespace.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_MARK = re.compile(
    r"^ {0,3}(?:(?P<level>#{1,3})[ \t]+(?P<title>\S.*)|(?P<fence>`{3,}|~{3,})(?P<rest>.*))", re.MULTILINE
)
_BLANK_LINES = re.compile(r"(?:^[ \t]*\r?\n)+", re.MULTILINE)
_MAX_TITLE_LENGTH = 100
_UNTITLED = "Beginning"
# A value of headings only would have an outline longer than itself.
_MAX_BULLETS = 500


class Chunk(NamedTuple):
    """A part of a value. `level` is the level of its heading, or 0 before the first heading."""

    title: str
    level: int
    text: str


def split(value: str, size: int) -> tuple[Chunk, ...]:
    """Split a value into its chunks, each of at most `size` characters."""
    return tuple(chunk for section in _split_sections(value) for chunk in _split_section(section, size))


def _split_sections(value: str) -> Iterator[Chunk]:
    title, level, start, fence = _UNTITLED, 0, 0, ""
    for mark in _MARK.finditer(value):
        if mark["fence"]:
            fence = _fence_after(fence, mark["fence"], mark["rest"].strip())
        elif not fence:
            if mark.start() > start:
                yield Chunk(title, level, value[start : mark.start()])
            title, level, start = _title(mark["title"]), len(mark["level"]), mark.start()
    yield Chunk(title, level, value[start:])


def _fence_after(fence: str, marker: str, rest: str) -> str:
    """Return the code fence that is open after this line, or "" for none."""
    if not fence:
        return "" if marker[0] == "`" and "`" in rest else marker
    return "" if marker.startswith(fence) and not rest else fence


def _title(text: str) -> str:
    # The outline is read line by line and quotes keys in backticks; a heading must not imitate either.
    title = " ".join(text.split()).rstrip("#").rstrip().replace("`", "'")
    return title[:_MAX_TITLE_LENGTH] or "Untitled"


def _split_section(section: Chunk, size: int) -> Iterator[Chunk]:
    for number, text in enumerate(_split_text(section.text, size)):
        title = section.title if number == 0 else f"{section.title} (continued {number})"
        yield section._replace(title=title, text=text)


def _split_text(text: str, size: int) -> Iterator[str]:
    if len(text) <= size:
        yield text
        return
    chunk_text = ""
    for paragraph in _split_paragraphs(text, size):
        if len(chunk_text) + len(paragraph) > size:
            yield chunk_text
            chunk_text = ""
        chunk_text += paragraph
    yield chunk_text


def _split_paragraphs(text: str, size: int) -> Iterator[str]:
    """Yield the paragraphs with the blank lines that end them; one that is too long is split at `size`."""
    start = 0
    ends = [match.end() for match in _BLANK_LINES.finditer(text)]
    for end in (*ends, len(text)):
        for cut in range(start, end, size):
            yield text[cut : min(cut + size, end)]
        start = end


def outline(key: str, value: str, size: int) -> str:
    """Return a large value's outline: one bullet for each chunk, with the key that reads it.

    After 500 bullets, one line says how the remaining chunks are named.
    """
    chunks = split(value, size)
    head = f"Document Outline ({len(value)} characters). Read the parts you need before concluding."
    bullets = [_bullet(key, number, chunk) for number, chunk in enumerate(chunks[:_MAX_BULLETS])]
    if len(chunks) > _MAX_BULLETS:
        bullets.append(f"- ({len(chunks) - _MAX_BULLETS} more, up to `{key}-chunk{len(chunks) - 1}`)")
    return "\n".join([head, "", *bullets])


def _bullet(key: str, number: int, chunk: Chunk) -> str:
    indent = "  " * max(0, chunk.level - 1)
    return f"{indent}- **{chunk.title}** -> `{key}-chunk{number}`"
