"""Read EML: blocks are the headers that people see, the paragraphs of the text, and attached texts."""

from collections.abc import Iterator
from email import message_from_bytes
from email.errors import MessageError
from email.message import EmailMessage, MIMEPart
from email.policy import default

from shared.memory.documents.parsed import Block, Unreadable
from workers.documents.parsing import web_page
from workers.documents.parsing.text import decode, lines_of, numbered, paragraphs, storable

_HEADERS = ("Subject", "From", "To", "Cc", "Date")
_MAX_DEPTH = 10
"""How deep a mail may be attached to a mail."""


def read_mail(content: bytes) -> tuple[str | None, tuple[Block, ...]]:
    """Return the subject and the blocks; each header and paragraph begins a line of the document's text."""
    try:
        message = message_from_bytes(content, policy=default)
        texts = list(_texts(message, _MAX_DEPTH))
    except (MessageError, ValueError, LookupError, TypeError, AttributeError, IndexError) as error:
        # The standard library has raised each of these for mails with malformed headers.
        raise Unreadable("damaged", "The file begins as a mail, but can't be read as one.") from error
    return storable(str(message.get("Subject", ""))).strip() or None, numbered(texts)


def _texts(message: EmailMessage, depth: int) -> Iterator[str]:
    for name in _HEADERS:
        if message.get(name):
            yield f"{name}: {' '.join(str(message[name]).split())}"
    body = message.get_body(preferencelist=("plain", "html"))
    if body is not None:
        yield from _part_texts(body)
    for part in message.iter_attachments() if message.is_multipart() else ():
        if part is not body:
            yield from _attachment_texts(part, depth)


def _attachment_texts(part: MIMEPart, depth: int) -> Iterator[str]:
    """Yield the name of an attachment and, if it is a text or a mail, what it says."""
    media_type = part.get_content_type()
    if media_type == "message/rfc822":
        inner = part.get_content()
        if depth and isinstance(inner, EmailMessage):
            yield from _texts(inner, depth - 1)
        return
    yield f"Attachment: {part.get_filename() or 'without a name'} ({media_type})"
    if part.get_content_maintype() == "text":
        yield from _part_texts(part)


def _part_texts(part: MIMEPart) -> Iterator[str]:
    text = _decoded(part)
    if part.get_content_subtype() == "html":
        blocks = web_page.read_html(text)[1]
    else:
        blocks = tuple(paragraphs(lines_of(text)))
    yield from (block.text for block in blocks)


def _decoded(part: MIMEPart) -> str:
    """Return the text of a part, also if its charset is not known or does not fit."""
    payload = part.get_payload(decode=True)
    content = payload if isinstance(payload, bytes) else b""
    try:
        return content.decode(part.get_content_charset("utf-8"))
    except (LookupError, UnicodeError):
        return decode(content) or content.decode("latin-1")
