"""Tell what a file is, by its content. Its name and its declared type only choose between kinds of text."""

import re
from enum import StrEnum
from pathlib import PurePath

from shared.memory.documents.parsed import Unreadable
from workers.documents.parsing import signatures
from workers.documents.parsing.archives import open_archive
from workers.documents.parsing.text import decode


class Format(StrEnum):
    """The formats that can be read, by their media types."""

    TEXT = "text/plain"
    MARKDOWN = "text/markdown"
    HTML = "text/html"
    PDF = "application/pdf"
    WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    MAIL = "message/rfc822"
    SLACK = "application/vnd.slack.export+zip"
    WEBVTT = "text/vtt"
    SUBRIP = "application/x-subrip"
    CSV = "text/csv"


_READABLE = "Markdown, text, HTML, PDF, CSV, DOCX, EML, Slack exports, VTT and SRT can be read."
_PARTS_OF_OFFICE = {
    "word/": Format.WORD,
    "xl/": "a spreadsheet (XLSX)",
    "ppt/": "a presentation (PPTX)",
}
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HTML_START = re.compile(r"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_HTML_TAG = re.compile(
    r"</?(?:p|div|span|a|h[1-6]|ul|ol|li|table|tr|td|br|script|style|title|section)\b[^<>]*>", re.IGNORECASE
)
_BEFORE_HTML = (("<?xml", "?>"), ("<!--", "-->"))
_HEADER = re.compile(r"([A-Za-z][A-Za-z0-9-]*):[ \t]?")
_MAIL_HEADERS = "from to cc subject date message-id received mime-version return-path delivered-to"
_MIN_MAIL_HEADERS = 3
_BY_SUFFIX = {
    **dict.fromkeys((".html", ".htm", ".xhtml"), Format.HTML),
    **dict.fromkeys((".md", ".markdown", ".mdown"), Format.MARKDOWN),
    ".eml": Format.MAIL,
    ".pdf": Format.PDF,
    ".vtt": Format.WEBVTT,
    **dict.fromkeys((".csv", ".tsv"), Format.CSV),
}
_BY_TYPE = {
    **dict.fromkeys(("text/html", "application/xhtml+xml"), Format.HTML),
    **dict.fromkeys(("text/markdown", "text/x-markdown"), Format.MARKDOWN),
    "message/rfc822": Format.MAIL,
    "application/pdf": Format.PDF,
    "text/vtt": Format.WEBVTT,
    **dict.fromkeys(("text/csv", "text/tab-separated-values"), Format.CSV),
}
_WEBVTT_START = re.compile(r"WEBVTT(?:[ \t\r\n]|$)")
_TIMING = re.compile(r"^(?:\d+:)?\d{1,2}:\d{1,2}\.\d+[ \t]+-->", re.MULTILINE)
_SUBRIP_START = re.compile(r"\s*\d+[ \t]*\n\s*\d+:\d{1,2}:\d{1,2}[,.]\d+\s*-->")
_MAX_CONTROL_SHARE = 0.02
_SAMPLE_CHARACTERS = 65_536
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


def detect(content: bytes, file_name: str, declared_type: str | None) -> Format:
    """Return the format of a file. Raises Unreadable for one that can't be read."""
    if not content.strip():
        raise Unreadable("no_text", "The file is empty.")
    named = _named_format(file_name, declared_type)
    if signatures.is_pdf(content, is_named_so=named == Format.PDF):
        return Format.PDF
    if content.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _detect_archive(content)
    if content.startswith(_OLE):
        raise _refuse_ole(content)
    if other := signatures.name_of_other(content):
        raise _unsupported(other)
    return _detect_text(content, named)


def _named_format(file_name: str, declared_type: str | None) -> Format | None:
    suffix = PurePath(file_name).suffix.lower()
    media_type = (declared_type or "").partition(";")[0].strip().lower()
    return _BY_SUFFIX.get(suffix) or _BY_TYPE.get(media_type)


def _unsupported(name: str) -> Unreadable:
    return Unreadable("unsupported", f"The file is {name}. {_READABLE}")


def _refuse_ole(content: bytes) -> Unreadable:
    if "EncryptedPackage".encode("utf-16-le") in content:
        return Unreadable("encrypted", "The file is an Office document that is encrypted with a password.")
    if "Workbook".encode("utf-16-le") in content:
        return _unsupported("a spreadsheet (XLS)")
    return _unsupported("an Office document of before 2007: save it as DOCX")


def _detect_archive(content: bytes) -> Format:
    with open_archive(content) as archive:
        names = set(archive.namelist())
        if "[Content_Types].xml" in names:
            for folder, kind in _PARTS_OF_OFFICE.items():
                if any(name.startswith(folder) for name in names):
                    return _format_or_refusal(kind)
        if "mimetype" in names:
            raise _unsupported("an OpenDocument or EPUB file")
    if is_slack_export(names):
        return Format.SLACK
    raise _unsupported("a ZIP archive that is no Slack export")


def _format_or_refusal(kind: Format | str) -> Format:
    if isinstance(kind, Format):
        return kind
    raise _unsupported(kind)


def is_slack_export(names: set[str]) -> bool:
    """Tell whether an archive has what every export of Slack has: its users, and channels or messages."""
    return "users.json" in names and bool(names & {"channels.json", "groups.json", "dms.json", "mpims.json"})


def _detect_text(content: bytes, named: Format | None) -> Format:
    text = decode(content)
    if text is None or _is_binary(text):
        raise _unsupported("no text, and of no known format")
    start = text.lstrip("\ufeff").lstrip()[:_SAMPLE_CHARACTERS]
    if _WEBVTT_START.match(start) and (named == Format.WEBVTT or _TIMING.search(start)):
        return Format.WEBVTT
    if _SUBRIP_START.match(start.replace("\r\n", "\n")):
        return Format.SUBRIP
    if _HTML_START.match(_without_prolog(start)) or (named == Format.HTML and _HTML_TAG.search(start)):
        return Format.HTML
    if _count_mail_headers(start) >= (1 if named == Format.MAIL else _MIN_MAIL_HEADERS):
        return Format.MAIL
    return named if named in {Format.MARKDOWN, Format.CSV} else Format.TEXT


def _without_prolog(start: str) -> str:
    """Return the start of a text without a declaration of XML and comments before the first element."""
    for opening, closing in _BEFORE_HTML:
        while start.startswith(opening) and closing in start:
            start = start.partition(closing)[2].lstrip()
    return start


def _is_binary(text: str) -> bool:
    sample = text[:_SAMPLE_CHARACTERS]
    return len(_CONTROL.findall(sample)) > _MAX_CONTROL_SHARE * len(sample)


def _count_mail_headers(start: str) -> int:
    """Return how many headers of a mail stand at the start of a text, before its first empty line."""
    names: set[str] = set()
    for line in start.replace("\r\n", "\n").split("\n"):
        if line.startswith((" ", "\t")) and names:  # goes on with the header before
            continue
        header = _HEADER.match(line)
        if header is None:
            break
        names.add(header[1].lower())
    return len(names & set(_MAIL_HEADERS.split()))
