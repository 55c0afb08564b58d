"""The summary of a session, as it is stored."""

from dataclasses import dataclass

from sqlalchemy import RowMapping

MAX_SUMMARY = 16_000


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """What the turns of a session from number `first_seq` to `last_seq` say; `model` has written it."""

    session_id: str
    content: str
    first_seq: int
    last_seq: int
    model: str

    @classmethod
    def from_row(cls, row: RowMapping) -> "SessionSummary":
        """Read a summary from a row of `session_summary`."""
        return cls(**{name: row[name] for name in cls.__slots__})


def summary_id_of(session_id: str) -> str:
    """Return the id of a session's summary, by which stored responses that show it are found."""
    return f"{session_id}#summary"
