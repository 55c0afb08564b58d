"""Pinned texts as they are stored and returned by the API."""

from datetime import datetime
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from shared.foundation import errors, validation
from shared.foundation.origin import UNKNOWN, Origin

MAX_CONTENT_LENGTH = 4000


class PinnedText(BaseModel):
    """A text that stands in every context of an agent, or of one of its users. The version is its ETag."""

    model_config = ConfigDict(frozen=True)

    id: str
    name: str
    content: str
    agent_id: str
    user_id: str | None
    version: int
    created_at: datetime
    updated_at: datetime
    origin: Origin = UNKNOWN
    tenant: str = Field(exclude=True)

    @classmethod
    def from_row(cls, row: RowMapping) -> "PinnedText":
        """Read a text from a row of `pinned_text`."""
        fields: dict[str, Any] = {**row}
        return cls.model_validate(fields | {"origin": Origin.from_row(fields)})


class CoreText(NamedTuple):
    """A pinned text as a context shows it."""

    id: str
    name: str
    content: str


def check_name(name: str) -> str:
    """Return the name of a pinned text: at most 128 characters, such as `persona` or `style/letters`."""
    return validation.check_identifier(name, "name")


def check_content(content: str) -> str:
    """Return the content of a pinned text; raise errors.Invalid if it is blank or too long."""
    validation.check_text(content, "content")
    if len(content) > MAX_CONTENT_LENGTH:
        raise errors.Invalid("content", f"must be at most {MAX_CONTENT_LENGTH} characters")
    return content
