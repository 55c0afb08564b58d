"""A snippet of a scratchpad, as it is stored and returned by the API."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from shared.foundation import validation

MAX_SNIPPETS = 64
"""Snippets of one session. The table has a slot for each, so that no writer can add another."""
MANY_SNIPPETS = 48
"""So many snippets make a summary of the session due, although its window is not full."""
MAX_CONTENT = 4000


class Snippet(BaseModel):
    """A snippet. `count` says how often it was written; `promoted_at` is set once its text is kept elsewhere.

    `revision` grows with every use, so that the snippet with the lowest is the least recently used.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    content: str
    count: int
    promoted_at: datetime | None
    created_at: datetime
    updated_at: datetime
    session_id: str
    slot: int = Field(exclude=True)
    revision: int = Field(exclude=True)

    @classmethod
    def from_row(cls, row: RowMapping) -> "Snippet":
        """Read a snippet from a row of `scratchpad_snippet`."""
        return cls.model_validate({**row})


def check_content(content: str) -> str:
    """Return the content of a snippet; raise errors.Invalid if it is blank or too long."""
    return validation.check_text(content, "content", MAX_CONTENT)
