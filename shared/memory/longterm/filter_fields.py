"""The fields of memories that a filter expression may name, and what they are in Postgres."""

from typing import Any

from sqlalchemy import ColumnElement, func

from shared.foundation.filter_expression import Comparison, Field, Fields, FieldType
from shared.foundation.stages import MemoryState
from shared.memory.longterm.table import memory

_TEXT, _PATH, _NUMBER, _TIME = (
    Field(type_) for type_ in (FieldType.TEXT, FieldType.PATH, FieldType.NUMBER, FieldType.TIME)
)
FIELDS: Fields = {
    "metadata": Field(FieldType.METADATA),
    "tags": Field(FieldType.TEXTS),
    "category": _PATH,
    "importance": _NUMBER,
    "state": Field(FieldType.CHOICE, tuple(MemoryState)),
    "created_at": _TIME,
    "updated_at": _TIME,
    "last_seen_at": _TIME,
    "occurred_at": _TIME,
    "archived_at": _TIME,
    "valid_from": _TIME,
    "valid_until": _TIME,
    "expires_at": _TIME,
    "namespace": _PATH,
    "key": _TEXT,
    "id": _TEXT,
    "reinforcement_count": _NUMBER,
    "source.session_id": _TEXT,
    "source.seq": _NUMBER,
    "source.speaker": _TEXT,
    "source.role": _TEXT,
}
_COLUMNS: dict[str, ColumnElement[Any]] = {
    "namespace": func.nullif(memory.c.namespace, ""),
    "source.session_id": memory.c.source_session_id,
    "source.seq": memory.c.source_seq,
    "source.speaker": memory.c.sources[0]["speaker"].astext,
    "source.role": memory.c.sources[0]["role"].astext,
}


def column_of(comparison: Comparison) -> ColumnElement[Any]:
    """Return the column of a condition's field. A source is the first one, which a memory shows as such."""
    if comparison.type is FieldType.METADATA:
        metadata: ColumnElement[str] = memory.c.metadata[comparison.metadata_name].astext
        return metadata
    column = _COLUMNS.get(comparison.field)
    return memory.c[comparison.field] if column is None else column
