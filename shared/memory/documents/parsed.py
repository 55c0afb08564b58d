"""What a parser makes of a file: blocks of text with their positions, or the reason why it can't be read."""

from dataclasses import dataclass
from typing import Literal

PARSER_VERSION = 4
"""Raise it whenever a file may be read otherwise than before: a document whose file is uploaded again is
then read anew, although the bytes are the same."""
UnreadableReason = Literal["encrypted", "no_text", "too_large", "damaged", "unsupported", "timed_out"]


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, heading, table row, mail header, spoken line or the like."""

    text: str
    page: int | None = None  # from 1
    line_from: int | None = None  # lines of the document's text, from 1
    line_to: int | None = None


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """The text of a file. `media_type` is what the file really is, whatever it was declared to be."""

    title: str | None
    media_type: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """What a file was found to be, and by which method its text was taken and cut."""

    title: str | None
    media_type: str
    method: str


class Unreadable(Exception):
    """A file that has no text that could be searched. `detail` is a sentence for people."""

    def __init__(self, reason: UnreadableReason, detail: str) -> None:
        super().__init__(detail)
        self.reason: UnreadableReason = reason
        self.detail = detail
