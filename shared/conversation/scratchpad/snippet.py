"""A snippet of a scratchpad, as it is stored and returned by the API."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from shared.foundation import validation
from shared.foundation.origin import UNKNOWN, Origin

MAX_SNIPPETS = 64
"""Snippets of one session. The table has a slot for each, so that no writer can add another."""
MANY_SNIPPETS = 48
"""So many snippets make a summary of the session due, although its window is not full."""
MAX_CONTENT = 4000


class Snippet(BaseModel):
    """A snippet. `count` says how often it was written; `promoted_at` is set once its text is kept elsewhere.

    `revision` grows with every use, so that the snippet with the lowest is the least recently used. One that
    repeats a playbook names it: the copy goes with its original, so nothing that stays may be made from it.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    content: str
    count: int
    promoted_at: datetime | None
    created_at: datetime
    updated_at: datetime
    session_id: str
    origin: Origin = UNKNOWN
    slot: int = Field(exclude=True)
    revision: int = Field(exclude=True)
    playbook_id: str | None = Field(default=None, exclude=True)

    @property
    def is_own_note(self) -> bool:
        """Whether the agent has noted it, and not a search for playbooks."""
        return self.playbook_id is None

    @property
    def is_to_examine(self) -> bool:
        """Whether a promotion that names no snippets examines it: what was promoted before is kept already.

        A copy of a playbook goes with its original, and a playbook is not lost when the copy is evicted.
        """
        return self.promoted_at is None and self.is_own_note

    @classmethod
    def from_row(cls, row: RowMapping) -> "Snippet":
        """Read a snippet from a row of `scratchpad_snippet`."""
        fields: dict[str, Any] = {**row}
        return cls.model_validate(fields | {"origin": Origin.from_row(fields)})


def check_content(content: str) -> str:
    """Return the content of a snippet; raise errors.Invalid if it is blank or too long."""
    return validation.check_text(content, "content", MAX_CONTENT)
