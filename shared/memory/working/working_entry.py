"""A working-memory entry, with and without its value.

Inventories and lists consist of `WorkingEntryInfo`, which has no field for the value, so that no
inventory can contain one by mistake. `version` is also that of the entry's point in the index. Two fields
are not part of responses: `remaining` is the seconds that were left when the entry was read, by the time
of the Redis server, from which the reader's may differ. `large` says that the entry is read by parts (see
`chunks.py`).
"""

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from shared.foundation.origin import UNKNOWN, Origin


class WorkingEntryInfo(BaseModel):
    """An entry without its value. `key` is the full path as it was first written."""

    model_config = ConfigDict(frozen=True)

    key: str
    stored_at: datetime
    expires_at: datetime
    category: str | None = None
    tags: tuple[str, ...] = ()
    # An entry that a process of an earlier version has written has none.
    origin: Origin = UNKNOWN
    version: int
    remaining: float = Field(exclude=True)
    large: bool = Field(default=False, exclude=True)


class WorkingEntry(WorkingEntryInfo):
    """An entry with its value. The value of a large entry is its outline unless it was read in full."""

    value: str
