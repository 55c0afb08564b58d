"""Read PDF: a block is a paragraph, as far as the lines of a page tell where one ends."""

import re
from collections.abc import Iterator

import pypdfium2
from pypdfium2 import raw

from shared.memory.documents.parsed import Block, Unreadable
from workers.documents.parsing.text import storable, title_or_none

_HYPHEN_AT_LINE_END = re.compile("[\x02\ufffe]\\s*")  # how PDFium marks one
_SENTENCE_END = (".", "!", "?", ":", "…", "。")
_SHORT_LINE = 0.75
"""A line of less than this share of the page's longest one ends a paragraph, if it ends a sentence."""


def read_pdf(content: bytes) -> tuple[str | None, tuple[Block, ...]]:
    """Return the title, if the file names one, and the blocks with their pages."""
    with _open(content) as document:
        title = title_or_none(document.get_metadata_value("Title"))
        blocks = tuple(
            Block(paragraph, page=number)
            for number, index in enumerate(range(len(document)), start=1)
            for paragraph in _paragraphs(_page_text(document, index))
        )
    if not blocks:
        raise Unreadable(
            "no_text", "The PDF has no text. If its pages are scanned pictures, run a text recognition first."
        )
    return title, blocks


def _open(content: bytes) -> pypdfium2.PdfDocument:
    try:
        return pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        if error.err_code in {raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY}:
            raise Unreadable("encrypted", "The PDF is encrypted with a password.") from error
        raise Unreadable("damaged", "The file begins as a PDF, but can't be read as one.") from error


def _page_text(document: pypdfium2.PdfDocument, index: int) -> str:
    """Return the text of a page; a page that can't be read has none."""
    try:
        page = document[index]
        try:
            text_page = page.get_textpage()
            try:
                text: str = text_page.get_text_bounded()
            finally:
                text_page.close()
        finally:
            page.close()
    except pypdfium2.PdfiumError:
        return ""
    return storable(_HYPHEN_AT_LINE_END.sub("", text))


def _paragraphs(text: str) -> Iterator[str]:
    lines = [line.strip() for line in text.split("\n")]
    longest = max(map(len, lines))
    paragraph: list[str] = []
    for line in lines:
        if line:
            paragraph.append(line)
        is_last = not line or (len(line) < _SHORT_LINE * longest and line.endswith(_SENTENCE_END))
        if is_last and paragraph:
            yield "\n".join(paragraph)
            paragraph = []
    if paragraph:
        yield "\n".join(paragraph)
