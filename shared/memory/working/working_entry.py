"""An entry on the desk, with and without its value.

A listing is what inventories and lists show; it has no field for the value, so that no inventory
can carry one by mistake. Two fields serve the code and stay out of answers: `remaining`, the
seconds that were left by Redis's own clock when the entry was read (the reader's clock may
differ), and `large`, which tells that the entry is read by parts (`chunks.py`).
"""

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field


class WorkingEntryInfo(BaseModel):
    """An entry without its value; `key` is the full path as it was first written."""

    model_config = ConfigDict(frozen=True)

    key: str
    stored_at: datetime
    expires_at: datetime
    category: str | None = None
    tags: tuple[str, ...] = ()
    remaining: float = Field(exclude=True)
    large: bool = Field(default=False, exclude=True)


class WorkingEntry(WorkingEntryInfo):
    """An entry with its value; that of a large entry is its outline unless the whole was asked for."""

    value: str
