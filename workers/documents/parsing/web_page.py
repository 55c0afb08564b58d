"""Read HTML: the text that a browser would show, without scripts, styles and attributes.

What a page hides is text that its author does not show, and where instructions to models are put. It is known
by its element, by `hidden`, and by its own style; rules of style sheets are not read.
"""

from collections.abc import Iterator
from typing import Any

from lxml import etree, html

from shared.memory.documents.parsed import Block, Unreadable
from workers.documents.parsing.inline_style import InlineStyle, read_style
from workers.documents.parsing.text import storable, title_or_none

_HIDDEN_NAMES = (
    "script style template noscript iframe object embed svg math head select datalist canvas audio video"
)
_BLOCK_NAMES = (
    "address article aside blockquote body caption dd details dialog div dl dt fieldset figcaption figure"
    " footer form h1 h2 h3 h4 h5 h6 header hr html legend li main nav ol p pre section summary table tbody"
    " tfoot thead tr ul"
)
_HIDDEN, _BLOCKS = frozenset(_HIDDEN_NAMES.split()), frozenset(_BLOCK_NAMES.split())
_CELLS = frozenset({"td", "th"})
_TOO_DEEP = "ERR_RESOURCE_LIMIT"  # what follows is left out by the parser
_LINE_BREAK = "\x00"  # a character that no text has


def read_html(text: str) -> tuple[str | None, tuple[Block, ...]]:
    """Return the title and the blocks with the lines of the file."""
    parser = html.HTMLParser(encoding="utf-8", huge_tree=True, remove_pis=True, no_network=True)
    try:
        root = etree.fromstring(storable(text).encode(), parser)
    except etree.XMLSyntaxError as error:
        raise Unreadable("damaged", "The HTML of the file can't be read.") from error
    if any(error.type_name == _TOO_DEEP for error in parser.error_log):
        raise Unreadable("damaged", "The HTML of the file nests its parts too deep.")
    if root is None:
        return None, ()
    walk = _Walk()
    blocks = tuple(walk.blocks(root))
    return _title(root) or walk.heading, blocks


def _title(root: Any) -> str | None:
    """Return what the first `title` says that stands in nothing hidden, such as a picture."""
    for element in root.iter("title"):
        if not any(map(_hides_its_text, element.iterancestors())):
            return title_or_none("".join(element.itertext()))
    return None


def _hides_its_text(element: Any) -> bool:
    return element.tag not in {"html", "head"} and (_is_hidden(element) or bool(_style(element).hiding))


class _Walk:
    """The walk through a page's elements: the words of the block that is being read, and their lines.

    `heading` is the first visible heading of the page that says something, once the page is read.
    """

    def __init__(self) -> None:
        self.heading: str | None = None
        self._heading_parts: list[str] | None = None
        self._unseen_by = [frozenset[str]()]  # of each open element: the inherited styles that hide its text
        self._parts: list[str] = []
        self._line = 1
        self._line_from: int | None = None
        self._line_to = 1
        self._preformatted = 0

    def blocks(self, root: Any) -> Iterator[Block]:
        """Yield the blocks of a page."""
        walk = etree.iterwalk(root, events=("start", "end", "comment"))
        for event, element in walk:
            if event == "start":
                if element.tag in _BLOCKS:
                    yield from self._flush()
                self._enter(element)
                if _is_hidden(element):
                    walk.skip_subtree()
            else:
                if event == "end" and element.tag in _BLOCKS:
                    yield from self._flush()
                self._leave(element, event)
        yield from self._flush()

    def _enter(self, element: Any) -> None:
        self._line = element.sourceline or self._line
        self._preformatted += element.tag == "pre"
        style = _style(element)
        self._unseen_by.append((self._unseen_by[-1] - style.showing) | style.hiding)
        if element.tag == "h1" and self.heading is None:
            self._heading_parts = []
        if not _is_hidden(element):
            self._add(element.text)

    def _leave(self, element: Any, event: str) -> None:
        if event == "end":
            self._unseen_by.pop()
            if element.tag == "h1":
                self._end_heading()
            self._preformatted -= element.tag == "pre"
            if element.tag == "br":
                self._parts.append(_LINE_BREAK)
            elif element.tag in _CELLS and element.getnext() is not None:
                self._parts.append(" | ")
        if event == "comment" or _is_hidden(element):
            self._line += _count_unseen_lines(element)
        self._add(element.tail)

    def _add(self, text: str | None) -> None:
        if not text:
            return
        if self._unseen_by[-1]:
            self._line += _count_lines(text)
            return
        if self._heading_parts is not None:
            self._heading_parts.append(text)
        if text.strip():
            if self._line_from is None:
                self._line_from = self._line + _count_lines(text, len(text) - len(text.lstrip()))
            self._line_to = self._line + _count_lines(text, len(text.rstrip()))
        self._line += text.count("\n")
        self._parts.append(text.replace("\n", _LINE_BREAK) if self._preformatted else text)

    def _end_heading(self) -> None:
        if self._heading_parts is not None:
            self.heading, self._heading_parts = title_or_none("".join(self._heading_parts)), None

    def _flush(self) -> Iterator[Block]:
        lines = "".join(self._parts).split(_LINE_BREAK)
        if not self._preformatted:
            lines = [" ".join(line.split()) for line in lines]
        text = "\n".join(line.rstrip() for line in lines).strip("\n")
        if self._line_from is not None and text.strip(" |\n"):
            yield Block(text, None, self._line_from, self._line_to)
        self._parts, self._line_from = [], None


def _is_hidden(element: Any) -> bool:
    """Return whether a browser shows nothing of an element, as far as the element itself says so."""
    if element.tag in _HIDDEN or element.get("hidden") is not None:
        return True
    style = _style(element)
    is_closed = element.tag == "dialog" and element.get("open") is None
    return is_closed or style.is_gone or (style.is_squeezed and element.tag not in _CELLS)


def _style(element: Any) -> InlineStyle:
    return read_style(element.get("style", ""))


def _count_unseen_lines(element: Any) -> int:
    texts = element.itertext() if isinstance(element.tag, str) else (element.text or "",)
    return sum(map(_count_lines, texts))


def _count_lines(text: str, end: int | None = None) -> int:
    return text.count("\n", 0, end)
