"""Documents as they are uploaded, stored and returned by the API, and the chunks of their text."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field
from sqlalchemy import RowMapping

from shared.foundation.origin import UNKNOWN, Channel, Origin, Trust
from shared.foundation.scope import Caller

MAX_FILE_BYTES = 25 * 1024 * 1024
MAX_NAME_CHARACTERS = 512
"""Characters of a title, of a source and of the name of a file."""

OF_DOCUMENTS = Origin(channel=Channel.DOCUMENT, trust=Trust.OUTSIDE)
"""The origin of every document and of its chunks: whoever uploads one has not written it."""


class DocumentState(StrEnum):
    """The state of the latest version of a document."""

    PENDING = "pending"  # its file is stored and waits for a worker
    PROCESSING = "processing"  # a worker parses it, and stores and indexes its chunks
    READY = "ready"  # search finds it
    FAILED = "failed"  # its file has no text that could be searched; `reason` says why


@dataclass(frozen=True, slots=True)
class NewFile:
    """An uploaded file, received completely. `sha256` is in hexadecimal digits."""

    path: Path
    sha256: str
    size_bytes: int
    file_name: str
    declared_type: str | None = None
    title: str | None = None
    source: str | None = None
    # The trust that the caller asks for, which is never more than the server gives.
    trust: Trust | None = None

    def origin(self, caller: Caller) -> Origin:
        """Return the origin of an upload, which anybody may have written.

        Raises errors.Invalid if it asks for more trust.
        """
        return OF_DOCUMENTS.model_copy(update={"key_id": caller.key_id}).lowered(self.trust)


class ReplacedText(BaseModel):
    """What search no longer finds once an upload is ready: an earlier version, or what the source left."""

    id: str
    version: int
    file_name: str
    sha256: str


class Document(BaseModel):
    """A document. The same bytes were also uploaded from `other_sources`.

    `searchable` says whether search finds its latest version, or an earlier one until then. `progress` is in
    0..1: how much of the latest version is stored. At 1 it is searchable.
    """

    id: str
    title: str
    source: str | None
    other_sources: list[str] = Field(default=[])
    file_name: str
    media_type: str | None
    size_bytes: int
    sha256: str
    version: int
    state: DocumentState
    progress: float
    searchable: bool
    chunk_count: int | None
    reason_code: str | None
    reason: str | None
    created_at: datetime
    updated_at: datetime
    origin: Origin = UNKNOWN
    tenant: str = Field(exclude=True)
    declared_type: str | None = Field(exclude=True)
    file_id: str = Field(exclude=True)
    searchable_version: int | None = Field(exclude=True)
    former_source: str | None = Field(exclude=True)
    method: str | None = Field(exclude=True)
    stored_chunks: int = Field(exclude=True)

    @property
    def sources(self) -> list[str]:
        """All sources, that of the document first."""
        return [*([] if self.source is None else [self.source]), *self.other_sources]

    @classmethod
    def from_row(cls, row: RowMapping) -> "Document":
        """Build a document from a row of `document`."""
        shown = {
            "title": row["title"] or row["parsed_title"] or row["file_name"],
            "progress": _progress(row),
            "searchable": row["searchable_version"] is not None,
        }
        fields: dict[str, Any] = {**row}
        return cls.model_validate(fields | shown | {"origin": Origin.from_row(fields)})


class UploadedDocument(Document):
    """The document of an upload. `replaced` is what its source had before, if that was another text."""

    replaced: ReplacedText | None = None


_PARSED = 0.1
_STORED = 0.9


def _progress(row: RowMapping) -> float:
    """Return the progress: a tenth for parsing, a tenth for the index, and the rest for storing chunks."""
    if row["state"] == DocumentState.READY:
        return 1.0
    if not row["chunk_count"]:
        return 0.0
    stored: float = row["stored_chunks"] / row["chunk_count"]
    return round(_PARSED + (_STORED - _PARSED) * stored, 2)


@dataclass(frozen=True, slots=True)
class DocumentChunk:
    """A stored chunk of one version of a document, with the title of the document."""

    tenant: str
    id: str
    document_id: str
    title: str
    content: str
    page: int | None
    line_from: int | None
    line_to: int | None
    created_at: datetime


def chunk_id_of(document_id: str, version: int, position: int) -> str:
    """Return the id of a chunk: the same whenever the same version is stored, so that it is stored once."""
    return f"{document_id}/{version}/{position}"
