"""The stored form of a working-memory entry in Redis, and how a row of the scripts becomes an entry.

An entry is its value and one text of three lines: its version, which is the time when it was stored in
microseconds, the key as first written, and its details (category, tags, origin, whether it is large) as JSON.
The scripts read and write the first two lines, so that Redis sets the time and an overwritten key keeps its
spelling. They never parse the JSON, because Lua's cjson cannot tell an empty list from an empty object.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from shared.foundation import validation
from shared.foundation.origin import Origin
from shared.memory.working.working_entry import WorkingEntry, WorkingEntryInfo

Row = Sequence[str]
"""Milliseconds left, `expires_at` in milliseconds, the text of three lines, and the value if it was read."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def pack(category: str | None, tags: Iterable[str], origin: Origin, *, large: bool) -> str:
    """Return an entry's details as JSON. Raises errors.Invalid if category or tags break a rule."""
    details = {
        "category": None if category is None else validation.check_category(category),
        "tags": validation.check_tags(tags),
        # Appending lowers the trust that stands here (`scripts.APPEND`).
        "origin": {"channel": origin.channel, "trust": origin.trust, "key_id": origin.key_id},
        "large": large,  # the last, because appending changes it
    }
    return orjson.dumps(details).decode()


def listing(row: Row) -> WorkingEntryInfo:
    """Return the entry of a row, without its value."""
    return WorkingEntryInfo(**_fields(row))


def entry(row: Row) -> WorkingEntry:
    """Return the entry of a row that has a value."""
    return WorkingEntry(**_fields(row), value=row[3])


def _fields(row: Row) -> dict[str, Any]:
    remaining_ms, expires_at, text = row[:3]
    version, key, details = text.split("\n", 2)
    return {
        "key": key,
        "version": int(version),
        "stored_at": _EPOCH + timedelta(milliseconds=int(version) // 1000),
        "expires_at": _EPOCH + timedelta(milliseconds=int(expires_at)),
        "remaining": int(remaining_ms) / 1000,
        **orjson.loads(details),
    }
