"""The read-only parts of a large entry: its outline and its chunks, as entries of their own.

A part has a key that follows from the entry's key: `{key}-index` or `{key}-chunk{number}`. Parts are
computed whenever they are read (see `chunks.py`), so they have the times, category and tags of their
entry.
"""

from shared.memory.working import chunks, keys
from shared.memory.working.working_entry import WorkingEntry, WorkingEntryInfo


def select_view(entry: WorkingEntry, view: keys.View, chunk_size: int) -> WorkingEntry | None:
    """Return the entry or the part of it that a view names, or None if the entry has no such part."""
    if not view.is_part:
        return entry
    if not entry.large:
        return None
    if view.chunk is None:
        return _part(entry, "index", _outline(entry, chunk_size))
    parts = chunks.split(entry.value, chunk_size)
    if view.chunk >= len(parts):
        return None
    return _part(entry, f"chunk{view.chunk}", parts[view.chunk].text)


def _part(entry: WorkingEntry, suffix: str, value: str) -> WorkingEntry:
    return entry.model_copy(update={"key": f"{entry.key}-{suffix}", "value": value, "large": False})


def with_outline(entry: WorkingEntry, chunk_size: int) -> WorkingEntry:
    """Return the entry with its outline as value if it is large, and unchanged if it is not."""
    return entry.model_copy(update={"value": _outline(entry, chunk_size)}) if entry.large else entry


def _outline(entry: WorkingEntry, chunk_size: int) -> str:
    return chunks.outline(entry.key, entry.value, chunk_size)


def outline_info(info: WorkingEntryInfo) -> WorkingEntryInfo:
    """Return the listing of a large entry's outline."""
    return info.model_copy(update={"key": f"{info.key}-index", "large": False})
