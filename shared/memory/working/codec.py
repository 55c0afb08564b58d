"""How an entry lies in Redis, and how a row that the scripts answer becomes a record.

Beside the value stands one text of three lines: stored_at in milliseconds, the key as first
written, and JSON of the rest. The scripts read and write the first two lines, so that time is
Redis's and an overwritten key keeps its spelling; the JSON is theirs to carry, not to parse (Lua's
cjson cannot tell an empty list from an empty object).
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from shared.foundation import validation
from shared.memory.working.working_entry import WorkingEntry, WorkingEntryInfo

# Milliseconds left, expires_at in milliseconds, the text of three lines, and the value if read.
Row = Sequence[str]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def pack(category: str | None, tags: Iterable[str], *, large: bool) -> str:
    """Return the third line; Invalid if category or tags break a rule."""
    checked = None if category is None else validation.check_category(category)
    rest = {"category": checked, "tags": validation.check_tags(tags), "large": large}
    return orjson.dumps(rest).decode()


def listing(row: Row) -> WorkingEntryInfo:
    """Make a listing of a row."""
    return WorkingEntryInfo(**_fields(row))


def entry(row: Row) -> WorkingEntry:
    """Make an entry of a row that has its value."""
    return WorkingEntry(**_fields(row), value=row[3])


def _fields(row: Row) -> dict[str, Any]:
    left, ends, text = row[:3]
    stored_at, key, rest = text.split("\n", 2)
    return {
        "key": key,
        "stored_at": _at(stored_at),
        "expires_at": _at(ends),
        "remaining": int(left) / 1000,
        **orjson.loads(rest),
    }


def _at(milliseconds: str) -> datetime:
    return _EPOCH + timedelta(milliseconds=int(milliseconds))
