"""Turns as they are reported and stored, and the lines recalled with them."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from shared.foundation import validation
from shared.foundation.roles import MAX_TURN_CONTENT, Role
from shared.platform.spend.charge import ReportedUsage


class RecalledLine(BaseModel):
    """A memory as it was injected with a turn.

    The line is stored, so that the model sees the same line in the following contexts.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    line: str
    is_episode: bool = False


class TurnDraft(BaseModel):
    """A turn that is to be stored."""

    model_config = ConfigDict(frozen=True)

    role: Role
    content: str
    speaker: str | None = None
    created_at: datetime | None = None
    metadata: dict[str, str] = Field(default_factory=dict)
    recalled: tuple[RecalledLine, ...] = ()
    # The usage of the model call that produced this turn; it is recorded together with the turn.
    usage: ReportedUsage | None = None

    def validated(self) -> "TurnDraft":
        """Return the turn as it will be stored; raise errors.Invalid that names the field and the rule."""
        if self.speaker is not None:
            validation.check_text(self.speaker, "speaker", 128)
        created_at = self.created_at
        return self.model_copy(
            update={
                "content": validation.check_text(self.content, "content", MAX_TURN_CONTENT),
                "metadata": validation.check_metadata(self.metadata),
                "created_at": created_at and validation.check_time(created_at, "created_at"),
            }
        )


class Turn(BaseModel):
    """A turn as stored in Postgres and in the conversation window."""

    model_config = ConfigDict(frozen=True)

    session_id: str
    seq: int
    role: Role
    speaker: str | None
    content: str
    created_at: datetime
    metadata: dict[str, str]
    recalled_lines: list[RecalledLine] = Field(default_factory=list, exclude=True)
    version: int = Field(default=0, exclude=True)
    """The version of the turn's point in the index; 0 for a turn that was read from the window."""

    @classmethod
    def from_row(cls, row: RowMapping) -> "Turn":
        """Build a turn from a row of `turn`."""
        return cls.model_validate({**row})

    @property
    def record_id(self) -> str:
        """The record id of this turn in the index."""
        return record_id_of(self.session_id, self.seq)


def record_id_of(session_id: str, seq: int) -> str:
    """Return the record id of a turn. Session ids contain no '#', so the record id can be split again."""
    return f"{session_id}#{seq}"


def turn_key_of(record_id: str) -> tuple[str, int]:
    """Return the (session_id, seq) of a turn's record id."""
    session_id, _, seq = record_id.rpartition("#")
    return session_id, int(seq)
