"""Receive a file that is sent as a form: field by field as the bytes arrive, never as a whole in memory.

The parts are `file`, and optionally `title` and `source`; without a source it is the name of the file. The
bytes of the file go into a temporary file, and are counted and hashed on their way: one over the limit is
refused while it is still being sent.
"""

import hashlib
import unicodedata
from email.message import Message
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from shared.foundation import errors, validation
from shared.foundation.origin import Trust
from shared.memory.documents.document import MAX_FILE_BYTES, MAX_NAME_CHARACTERS, NewFile

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

FILE, TITLE, SOURCE, TRUST = "file", "title", "source", "trust"
_MAX_TEXT_BYTES = 4 * MAX_NAME_CHARACTERS
_NO_NAME = "document"


async def receive_file(request: Request, file: IO[bytes], path: Path) -> NewFile:
    """Write the file of a form into `file`, which lies at `path`, and return what the form says of it.

    Raises errors.WrongMediaType for another body than a form, errors.TooLarge, and errors.Invalid for a form
    that is cut off, has other parts or has no file.
    """
    form = _Form(file)
    boundary = _boundary_of(request)
    try:
        parser = MultipartParser(boundary, form.callbacks())
        async for block in request.stream():
            parser.write(block)
        parser.finalize()
    except FormParserError as error:
        raise errors.Invalid("body", "must be a form that can be read (multipart/form-data)") from error
    return form.to_file(path)


def _boundary_of(request: Request) -> bytes:
    media_type, options = parse_options_header(request.headers.get("content-type", ""))
    if media_type != b"multipart/form-data" or not options.get(b"boundary"):
        raise errors.WrongMediaType("Content-Type", "must be multipart/form-data")
    return options[b"boundary"]


class _Form:
    """The parts of a form that were received so far. The parser calls it in the order of the bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._sha256 = hashlib.sha256()
        self._size = 0
        self._headers = Message()
        self._header_name = self._header_value = b""
        self._name = ""
        self._file_headers: Message | None = None
        self._texts: dict[str, bytes] = {}
        self._is_complete = False

    def callbacks(self) -> "MultipartCallbacks":
        """Return the methods by the names that the parser has for them."""
        return {
            "on_part_begin": self._begin_part,
            "on_header_field": self._add_to_header_name,
            "on_header_value": self._add_to_header_value,
            "on_header_end": self._end_header,
            "on_headers_finished": self._begin_content,
            "on_part_data": self._add_content,
            "on_end": self._end,
        }

    def _begin_part(self) -> None:
        self._headers = Message()
        self._header_name = self._header_value = b""

    def _add_to_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _add_to_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _end_header(self) -> None:
        self._headers[self._header_name.decode("latin-1")] = self._header_value.decode("latin-1")
        self._header_name = self._header_value = b""

    def _begin_content(self) -> None:
        self._name = _option(self._headers, "name") or ""
        if self._name not in (FILE, TITLE, SOURCE, TRUST):
            raise errors.Invalid(
                "body", f"may have the parts {FILE}, {TITLE}, {SOURCE} and {TRUST}, and no others"
            )
        if self._name in self._texts or (self._name == FILE and self._file_headers is not None):
            raise errors.Invalid(self._name, "must not be given twice")
        if self._name == FILE:
            self._file_headers = self._headers
        else:
            self._texts[self._name] = b""

    def _add_content(self, data: bytes, start: int, end: int) -> None:
        if self._name == FILE:
            self._add_to_file(data[start:end])
            return
        text = self._texts[self._name] + data[start:end]
        if len(text) > _MAX_TEXT_BYTES:
            raise errors.TooLarge(self._name, f"must be at most {MAX_NAME_CHARACTERS} characters")
        self._texts[self._name] = text

    def _add_to_file(self, content: bytes) -> None:
        self._size += len(content)
        if self._size > MAX_FILE_BYTES:
            raise errors.TooLarge(FILE, f"must be at most {MAX_FILE_BYTES} bytes")
        self._sha256.update(content)
        self._file.write(content)

    def _end(self) -> None:
        self._is_complete = True

    def to_file(self, path: Path) -> NewFile:
        """Return the received file. Raises errors.Invalid if something of it is missing."""
        if not self._is_complete:
            raise errors.Invalid("body", "ends before the form does")
        if self._file_headers is None:
            raise errors.Invalid(FILE, "must be given")
        if not self._size:
            raise errors.Invalid(FILE, "must not be empty")
        self._file.flush()
        file_name = _file_name(self._file_headers)
        return NewFile(
            path=path,
            sha256=self._sha256.hexdigest(),
            size_bytes=self._size,
            file_name=file_name or _NO_NAME,
            declared_type=_printable(self._file_headers.get("content-type", "")) or None,
            title=self._text(TITLE),
            source=self._text(SOURCE) or file_name or None,
            trust=self._trust(),
        )

    def _trust(self) -> Trust | None:
        text = self._text(TRUST)
        if text is not None and text not in set(Trust):
            raise errors.Invalid(TRUST, f"must be one of {', '.join(Trust)}")
        return None if text is None else Trust(text)

    def _text(self, name: str) -> str | None:
        if name not in self._texts:
            return None
        try:
            text = self._texts[name].decode().strip()
        except UnicodeDecodeError:
            raise errors.Invalid(name, "must be UTF-8") from None
        return validation.check_single_line(text, name, MAX_NAME_CHARACTERS)


def _option(headers: Message, name: str) -> str | None:
    """Return an option of the content disposition; `name*=` (RFC 5987), which some clients add, is first."""
    options = headers.get_params([], "content-disposition")
    found: list[Any] = [value for key, value in options if key.lower() == name]
    for value in found:
        if isinstance(value, tuple):
            charset, _, text = value
            return _decode_extended(charset, text)
    return _decode(found[0].encode("latin-1")) if found else None


def _decode_extended(charset: str | None, text: str) -> str:
    raw = text.encode("latin-1", "replace")
    try:
        return raw.decode(charset or "utf-8")
    except (LookupError, ValueError):  # no charset, or not that of these bytes
        return _decode(raw)


def _decode(raw: bytes) -> str:
    """Return what a header says. Browsers and most clients send UTF-8 as it is, old ones Latin-1."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        # Windows-1252 has all letters of Latin-1, and more where that has control characters.
        return raw.decode("cp1252", "ignore")


def _file_name(headers: Message) -> str:
    """Return the last part of the name that the sender gave, if any: it is shown, and is no path here."""
    name = (_option(headers, "filename") or "").replace("\\", "/").rpartition("/")[2]
    # One form for both: systems write accents as letters of their own or with the letter.
    return unicodedata.normalize("NFC", _printable(name).strip())


def _printable(text: str) -> str:
    return "".join(character for character in text if character.isprintable())[:MAX_NAME_CHARACTERS]
