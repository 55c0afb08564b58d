"""Feedback signals as they are reported, stored and returned by the API."""

from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from shared.foundation import validation

MAX_SUMMARY = 500
MAX_DETAIL = 4000


class SignalType(StrEnum):
    """What a signal reports."""

    CORRECTION = "Correction"
    TOOL_FAILURE = "ToolFailure"
    SESSION_SUMMARY = "SessionSummary"
    USER_THUMBS_UP = "UserThumbsUp"
    USER_THUMBS_DOWN = "UserThumbsDown"


class FeedbackSignalDraft(BaseModel):
    """A signal that is to be stored.

    `likelihood`, in 0..1, and `previous`, the end of the assistant's turn before, are those of a
    doubtful correction. None means that there is no doubt. `first_seq` to `seq` are the turns that the signal
    was derived from, and `previous_seq` is the turn of `previous`; None: somebody reported it.
    """

    model_config = ConfigDict(frozen=True)

    type: SignalType
    summary: str
    detail: str | None = None
    likelihood: float | None = None
    previous: str | None = None
    first_seq: int | None = None
    seq: int | None = None
    previous_seq: int | None = None

    def validated(self) -> "FeedbackSignalDraft":
        """Return the signal as it will be stored; raise errors.Invalid that names the field and the rule."""
        validation.check_text(self.summary, "summary", MAX_SUMMARY)
        if self.detail is not None:
            validation.check_text(self.detail, "detail", MAX_DETAIL, allow_blank=True)
        return self


class DoubtfulCorrection(BaseModel):
    """A signal that is perhaps a correction: the user's words, and the assistant's before them."""

    model_config = ConfigDict(frozen=True)

    id: str
    detail: str
    previous: str | None


class FeedbackSignal(BaseModel):
    """A signal as stored in Postgres."""

    model_config = ConfigDict(frozen=True)

    id: str
    session_id: str
    type: SignalType
    summary: str
    detail: str | None
    created_at: datetime
    agent_id: str
    user_id: str | None
    tenant: str = Field(exclude=True)
    # The turn that a correction was found in; None: somebody reported the signal.
    seq: int | None = Field(default=None, exclude=True)

    @classmethod
    def from_row(cls, row: RowMapping) -> "FeedbackSignal":
        """Build a signal from a row of `feedback_signal`."""
        return cls.model_validate({**row})
