"""Read DOCX: a block is a paragraph or a row of a table.

Footnotes and endnotes follow the body, and then what its pages have as header and footer, each text once.

The text is collected from the elements of the body, because python-docx passes over text that was inserted
with tracked changes, content controls and text boxes. Text that was deleted with tracked changes is left out.
"""

import io
from collections.abc import Iterator
from typing import Any
from zipfile import BadZipFile

import docx
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.exceptions import OpcError
from docx.oxml import parse_xml
from docx.oxml.ns import qn
from lxml import etree

from shared.memory.documents.parsed import Block, Unreadable
from workers.documents.parsing.archives import open_archive
from workers.documents.parsing.text import numbered, storable, title_or_none

_PARAGRAPH, _TABLE, _ROW, _CELL = (qn(f"w:{name}") for name in ("p", "tbl", "tr", "tc"))
_TEXT = qn("w:t")
_SPACE = {qn("w:tab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", _PARAGRAPH: "\n"}
_AT_EDGES = (RELATIONSHIP_TYPE.HEADER, RELATIONSHIP_TYPE.FOOTER)
# What older programs show instead of a text box: the same text once more.
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"


def read_word(content: bytes) -> tuple[str | None, tuple[Block, ...]]:
    """Return the title and the blocks; each paragraph or row begins a line of the document's text."""
    with open_archive(content):
        try:
            document = docx.Document(io.BytesIO(content))
            body: Any = document.element.body
            etree.strip_elements(body, _FALLBACK, with_tail=False)
            return _title(document), numbered([*_texts(body), *_texts_beside(document)])
        except (OpcError, etree.LxmlError, BadZipFile, KeyError, ValueError, AttributeError) as error:
            raise Unreadable("damaged", "The file is no complete DOCX document.") from error


def _texts_beside(document: Any) -> Iterator[str]:
    """Yield the texts of notes, and of headers and footers: those of several sections are often the same."""
    seen = set[str]()
    for kind in (RELATIONSHIP_TYPE.FOOTNOTES, RELATIONSHIP_TYPE.ENDNOTES, *_AT_EDGES):
        for relation in document.part.rels.values():
            if relation.reltype != kind or relation.is_external:
                continue
            root = parse_xml(relation.target_part.blob)
            etree.strip_elements(root, _FALLBACK, with_tail=False)
            texts = [text for text in _texts(root) if text.strip()]
            yield from (text for text in texts if kind not in _AT_EDGES or text not in seen)
            seen.update(texts)


def _texts(container: Any) -> Iterator[str]:
    """Yield the texts of paragraphs and rows, also of those within content controls."""
    for element in container:
        if element.tag == _PARAGRAPH:
            yield _paragraph_text(element)
        elif element.tag == _TABLE:
            yield from (_row_text(row) for row in element.iter(_ROW) if _table_of(row) is element)
        else:
            yield from _texts(element)


def _table_of(row: Any) -> Any:
    return next(row.iterancestors(_TABLE))


def _row_text(row: Any) -> str:
    cells = (cell for cell in row.iter(_CELL) if next(cell.iterancestors(_ROW)) is row)
    texts = [" ".join(filter(None, map(str.strip, _texts(cell)))) for cell in cells]
    return " | ".join(texts) if any(texts) else ""


def _paragraph_text(paragraph: Any) -> str:
    nodes = paragraph.iter(_TEXT, *_SPACE)
    return "".join(_SPACE.get(node.tag) or node.text or "" for node in nodes).strip()


def _title(document: Any) -> str | None:
    if title := title_or_none(document.core_properties.title or ""):
        return title
    for paragraph in document.paragraphs:
        if paragraph.style.name in {"Title", "Heading 1"} and paragraph.text.strip():
            return storable(paragraph.text).strip()
    return None
