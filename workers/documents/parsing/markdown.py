"""Read Markdown: a block is a paragraph, heading, list item, table row or code block, as it is written."""

from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from shared.memory.documents.parsed import Block
from workers.documents.parsing import web_page
from workers.documents.parsing.text import block_of_lines, lines_of

# What text stands in. What holds other blocks, such as a list, has no text of its own.
_WITH_TEXT = {"paragraph_open", "heading_open", "tr_open", "fence", "code_block", "html_block", "hr"}

_MAX_TITLE_CHARACTERS = 1000


def read_markdown(text: str) -> tuple[str | None, tuple[Block, ...]]:
    """Return the title, which is the first heading, and the blocks with the lines of the file."""
    lines = lines_of(text)
    # Only where blocks begin is asked for. Their text stays as it is written, so nothing within is parsed.
    tokens = MarkdownIt("commonmark").enable("table").disable("inline").parse("\n".join(lines))
    starts = {token.map[0]: token for token in tokens if token.map and token.type in _WITH_TEXT}
    # What stands before the first of them, or between two, such as a definition of a link, is not lost.
    borders = sorted({0, *starts, len(lines)})
    blocks = [
        block for first, end in pairwise(borders) if (block := _block(lines, first, end, starts.get(first)))
    ]
    return _title(tokens), tuple(blocks)


def _block(lines: list[str], first: int, end: int, token: Token | None) -> Block | None:
    block = block_of_lines(lines, first, end)
    if block is None or token is None or token.type != "html_block":
        return block
    _, inner_blocks = web_page.read_html(block.text)
    text = "\n".join(inner.text for inner in inner_blocks)
    return Block(text, None, block.line_from, block.line_to) if text else None


def _title(tokens: list[Token]) -> str | None:
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.tag == "h1":
            (parsed,) = MarkdownIt("commonmark").parseInline(inline.content[:_MAX_TITLE_CHARACTERS])
            words = (part.content for part in parsed.children or () if part.type in {"text", "code_inline"})
            return "".join(words).strip() or None
    return None
