"""An agent's profile, its texts and its files, with the limits on each."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from shared.foundation import errors, validation

MAX_PUBLIC_KEY_LENGTH = 16_000
MAX_DOCUMENT_LENGTH = 64_000
MAX_TEXT_LENGTH = 64_000
MAX_NAME_LENGTH = 128
MAX_FILE_BYTES = 1024 * 1024
MAX_CONTENT_TYPE = 255


class Agent(BaseModel):
    """An agent's profile. It has an identity once it was given a public key and a document."""

    model_config = ConfigDict(frozen=True)

    id: str
    identity: str | None
    public_key: str | None
    document: str | None
    store_types: list[str] | None
    context_options: dict[str, Any] | None
    # Whether facts are mined out of its conversations with users, and out of those without a user, too.
    mine_facts: bool = True
    mine_common: bool = False
    created_at: datetime
    updated_at: datetime
    tenant: str = Field(exclude=True)

    @classmethod
    def from_row(cls, row: RowMapping) -> "Agent":
        """Read a profile from a row of `agent`."""
        return cls.model_validate({**row})


@dataclass(frozen=True, slots=True)
class IdentityProof:
    """The public key and the document that an agent's identity is computed from."""

    public_key: str
    document: str

    @classmethod
    def parse(cls, public_key: str | None, document: str | None) -> "IdentityProof | None":
        """Return both if both are given, and None if neither is.

        Raise errors.Invalid if only one is given, or if one can't be stored.
        """
        if public_key is None and document is None:
            return None
        if public_key is None or document is None:
            missing_field = "public_key" if public_key is None else "document"
            rule = "must be given: an identity is made of public_key and document"
            raise errors.Invalid(missing_field, rule)
        validation.check_text(public_key, "public_key", MAX_PUBLIC_KEY_LENGTH)
        validation.check_text(document, "document", MAX_DOCUMENT_LENGTH)
        return cls(public_key, document)


class TextDraft(BaseModel):
    """A text that a caller stores for an agent."""

    model_config = ConfigDict(frozen=True)

    content: str
    metadata: dict[str, str] = Field(default_factory=dict)

    def validated(self, prefix: str = "") -> "TextDraft":
        """Return the draft as it will be stored.

        Raise errors.Invalid if a field breaks its rule; `prefix` is written before the field's name.
        """
        validation.check_text(self.content, f"{prefix}content", MAX_TEXT_LENGTH)
        validation.check_metadata(self.metadata, f"{prefix}metadata")
        return self


class AgentText(BaseModel):
    """A stored text of an agent."""

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
    """A file without its content, as lists of files return it."""

    name: str
    content_type: str
    size_bytes: int
    modified: datetime

    def to_json(self) -> dict[str, Any]:
        """Return the file as JSON."""
        return {
            "name": self.name,
            "content_type": self.content_type,
            "size_bytes": self.size_bytes,
            "modified": self.modified.isoformat(),
        }


def check_name(name: str) -> str:
    """Return the name of a file if it is valid; raise errors.Invalid otherwise.

    Empty, '.' and '..' segments are refused because HTTP clients remove them from a URL.
    """
    validation.check_text(name, "name", MAX_NAME_LENGTH)
    if not name.isprintable() or not {"", ".", ".."}.isdisjoint(name.split("/")):
        raise errors.Invalid("name", "must be printable, without empty, '.' or '..' segments")
    return name


def check_content_type(content_type: str) -> str:
    """Return a content type that can be sent back in a header; raise errors.Invalid otherwise."""
    is_header_text = content_type.isascii() and content_type.isprintable()
    if not 1 <= len(content_type) <= MAX_CONTENT_TYPE or not is_header_text:
        rule = f"must be 1 to {MAX_CONTENT_TYPE} printable ASCII characters"
        raise errors.Invalid("content-type", rule)
    return content_type
