"""A turn of a conversation, and the lines recalled with it."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from shared.foundation import validation
from shared.foundation.roles import MAX_TURN_CONTENT, Role
from shared.platform.spend.charge import ReportedUsage


class RecalledLine(BaseModel):
    """An entry as it was shown with a turn: kept, so that the model keeps seeing it under its header."""

    model_config = ConfigDict(frozen=True)

    id: str
    line: str
    is_episode: bool = False


class TurnDraft(BaseModel):
    """A turn somebody reports."""

    model_config = ConfigDict(frozen=True)

    role: Role
    content: str
    speaker: str | None = None
    created_at: datetime | None = None
    metadata: dict[str, str] = Field(default_factory=dict)
    recalled: tuple[RecalledLine, ...] = ()
    # What the call to a model that made this turn used: booked with the turn.
    usage: ReportedUsage | None = None

    def validated(self) -> "TurnDraft":
        """Return the turn as it will be stored; raise errors.Invalid naming the field and the rule."""
        if self.speaker is not None:
            validation.check_text(self.speaker, "speaker", 128)
        at = self.created_at
        return self.model_copy(
            update={
                "content": validation.check_text(self.content, "content", MAX_TURN_CONTENT),
                "metadata": validation.check_metadata(self.metadata),
                "created_at": at and validation.check_time(at, "created_at"),
            }
        )


class Turn(BaseModel):
    """A turn as it stands in Postgres, and in the window."""

    model_config = ConfigDict(frozen=True)

    session_id: str
    seq: int
    role: Role
    speaker: str | None
    content: str
    created_at: datetime
    metadata: dict[str, str]
    recalled_lines: list[RecalledLine] = Field(default_factory=list, exclude=True)

    @classmethod
    def from_row(cls, row: RowMapping) -> "Turn":
        """Read a turn from a row of `turn`."""
        return cls.model_validate({**row})

    @property
    def record_id(self) -> str:
        """The name of this turn in the index."""
        return record_id_of(self.session_id, self.seq)


def record_id_of(session_id: str, seq: int) -> str:
    """Return the index's name of a turn; ids hold no '#', so it reads back unambiguously."""
    return f"{session_id}#{seq}"


def turn_key_of(record_id: str) -> tuple[str, int]:
    """Return the (session_id, seq) that `ref_of` named."""
    session_id, _, seq = record_id.rpartition("#")
    return session_id, int(seq)
