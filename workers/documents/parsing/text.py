"""Decode a text file, and divide it into lines that can be stored."""

import re
from itertools import pairwise

from shared.memory.documents.parsed import Block
from workers.documents.parsing.limits import MAX_LINES, too_much_text

_BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
# What programs write into a file that nobody has given a title, also as `Untitled-1` and `Document2.docx`:
# that it has none, with at most one word that says what it is (`Untitled spreadsheet`, `Présentation sans
# titre`), what every file of a program is, or the name of an empty value or of a file that nobody sees.
_UNTITLED = (
    "untitled unnamed no_title ohne_titel ohne_namen unbenannt(?:e[rs]?)? sans_titre sans_nom sin_título"
    " sin_titulo senza_titolo senza_nome sem_título sem_titulo naamloos naamloze zonder_titel uden_titel"
    " unavngivet namnlös bez_tytułu без_названия без_имени 无标题 未命名 無題 無標題 名称未設定 제목_없음"
)
_KINDS = (
    "document presentation slide spreadsheet worksheet workbook dokument präsentation documento документ"
    " powerpoint_presentation powerpoint-präsentation"
)
_EMPTY = "title anonymous unspecified null undefined none nil nan default temp tmp print blank about:blank"
_WORD = r"[^\W\d_]+"
_NAMELESS, _KIND, _NOTHING = (
    f"(?:{words.replace(' ', '|').replace('_', ' ')})" for words in (_UNTITLED, _KINDS, _EMPTY)
)
_NO_TITLE = re.compile(
    rf"[\W_]*(?:(?:{_NAMELESS}[\W_]*(?:{_WORD})?|{_WORD}[\W_]+{_NAMELESS}"
    rf"|(?:new (?:microsoft {_WORD} )?)?{_KIND}|{_NOTHING})[\W_]*\d{{0,4}}(?:\.\w{{1,5}})?\W*)?",
    re.IGNORECASE,
)
_PROGRAM = re.compile(rf"microsoft {_WORD} - ?", re.IGNORECASE)
_DECLARED = re.compile(rb"(?:charset|encoding)\s*=\s*[\"']?([A-Za-z0-9_.:-]{2,40})")
_DECLARED_WITHIN_BYTES = 2048
# Everything that is no text: control characters but tabs and line feeds, lone surrogates, non-characters.
_UNSTORABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def decode(content: bytes) -> str | None:
    """Return the text of a file, or None: by its mark, as UTF-8, as declared, by its letters."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return _decode_as(content, encoding)
    if b"\x00" in content:
        return None
    text = _decode_as(content, "utf-8")
    if text is None and (declared := _DECLARED.search(content[:_DECLARED_WITHIN_BYTES])):
        text = _decode_as(content, declared[1].decode("ascii"))
    return _decode_by_letters(content) if text is None else text


def _decode_as(content: bytes, encoding: str) -> str | None:
    try:
        return content.decode(encoding)
    except (UnicodeError, LookupError):
        return None


def _decode_by_letters(content: bytes) -> str | None:
    from charset_normalizer import from_bytes

    best = from_bytes(content).best()
    return None if best is None else str(best)


def storable(text: str) -> str:
    """Return a text with line feeds only, without characters that databases refuse."""
    return _UNSTORABLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def title_or_none(text: str) -> str | None:
    """Return a title on one line, without the name of the program that wrote the file.

    None if it is blank, or what programs write where nobody gave one.
    """
    title = " ".join(storable(text).split())
    if program := _PROGRAM.match(title):
        title = title[program.end() :]
    return None if _NO_TITLE.fullmatch(title) else title


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, as an editor numbers them, without white space at their ends.

    Raises Unreadable if they are too many.
    """
    text = storable(text)
    if text.count("\n") >= MAX_LINES:
        raise too_much_text()
    return [line.rstrip() for line in text.split("\n")]


def block_of_lines(lines: list[str], first: int, end: int) -> Block | None:
    """Return lines[first:end] as a block without empty lines around it, or None if all are empty."""
    while first < end and not lines[first].strip():
        first += 1
    while end > first and not lines[end - 1].strip():
        end -= 1
    return Block("\n".join(lines[first:end]), None, first + 1, end) if first < end else None


def paragraphs(lines: list[str]) -> list[Block]:
    """Return the paragraphs of a text: lines between empty ones."""
    starts = [
        number
        for number, line in enumerate(lines)
        if line.strip() and (number == 0 or not lines[number - 1].strip())
    ]
    borders = [*starts, len(lines)]
    blocks = [block_of_lines(lines, first, end) for first, end in pairwise(borders)]
    return [block for block in blocks if block]


def numbered(texts: list[str]) -> tuple[Block, ...]:
    """Return texts as blocks of a document whose text has no lines of its own: each begins a line."""
    blocks: list[Block] = []
    line = 1
    for text in filter(str.strip, map(storable, texts)):
        stripped = text.strip()
        blocks.append(Block(stripped, None, line, line + stripped.count("\n")))
        line += stripped.count("\n") + 1
    return tuple(blocks)
