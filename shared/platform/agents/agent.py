"""An agent's root, its texts and its files, as they are offered, kept and shown."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from shared.foundation import errors, validation

MAX_PUBLIC_KEY = 16_000
MAX_DOCUMENT = 64_000
MAX_TEXT = 64_000
MAX_NAME = 128
MAX_FILE = 1024 * 1024
MAX_CONTENT_TYPE = 255


class Agent(BaseModel):
    """An agent's root as it stands in Postgres. It has an identity once it was given a key and a document."""

    model_config = ConfigDict(frozen=True)

    id: str
    identity: str | None
    public_key: str | None
    document: str | None
    store_types: list[str] | None
    created_at: datetime
    updated_at: datetime
    tenant: str = Field(exclude=True)

    @classmethod
    def from_row(cls, row: RowMapping) -> "Agent":
        """Read a root from a row of `agent`."""
        return cls.model_validate({**row})


@dataclass(frozen=True, slots=True)
class IdentityProof:
    """What an identity is made of."""

    public_key: str
    document: str

    @classmethod
    def parse(cls, public_key: str | None, document: str | None) -> "IdentityProof | None":
        """Return both if they are given; raise errors.Invalid if one comes alone, or can't be kept."""
        if public_key is None and document is None:
            return None
        if public_key is None or document is None:
            lacking = "public_key" if public_key is None else "document"
            raise errors.Invalid(lacking, "must be given: an identity is made of public_key and document")
        validation.check_text(public_key, "public_key", MAX_PUBLIC_KEY)
        validation.check_text(document, "document", MAX_DOCUMENT)
        return cls(public_key, document)


class TextDraft(BaseModel):
    """A text that an agent keeps."""

    model_config = ConfigDict(frozen=True)

    content: str
    metadata: dict[str, str] = Field(default_factory=dict)

    def validated(self, place: str = "") -> "TextDraft":
        """Return it as it will be stored; raise errors.Invalid, the field named behind its `place`."""
        validation.check_text(self.content, f"{place}content", MAX_TEXT)
        validation.check_metadata(self.metadata, f"{place}metadata")
        return self


class AgentText(BaseModel):
    """A text as it stands in Postgres."""

    model_config = ConfigDict(frozen=True)

    id: str
    content: str
    metadata: dict[str, str]
    created_at: datetime

    @classmethod
    def from_row(cls, row: RowMapping) -> "AgentText":
        """Read a text from a row of `agent_text`."""
        return cls.model_validate({**row})


@dataclass(frozen=True, slots=True)
class AgentFile:
    """A file as it is listed."""

    name: str
    content_type: str
    size_bytes: int
    modified: datetime

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "name": self.name,
            "content_type": self.content_type,
            "size_bytes": self.size_bytes,
            "modified": self.modified.isoformat(),
        }


def check_name(name: str) -> str:
    """Return the name of a file: printable, such as an address can name and no client folds."""
    validation.check_text(name, "name", MAX_NAME)
    if not name.isprintable() or not {"", ".", ".."}.isdisjoint(name.split("/")):
        raise errors.Invalid("name", "must be printable, without empty, '.' or '..' segments")
    return name


def check_content_type(told: str) -> str:
    """Return a content type that can be told again in a header."""
    if not 1 <= len(told) <= MAX_CONTENT_TYPE or not (told.isascii() and told.isprintable()):
        rule = f"must be 1 to {MAX_CONTENT_TYPE} printable ASCII characters"
        raise errors.Invalid("content-type", rule)
    return told
