"""The fields of sessions that a filter expression may name, and what they are in Postgres."""

from typing import Any

from sqlalchemy import ColumnElement

from shared.conversation.sessions.session import STORE_TYPES, SessionKind
from shared.conversation.sessions.table import session
from shared.foundation.filter_expression import Comparison, Field, Fields, FieldType

_TEXT, _TIME = Field(FieldType.TEXT), Field(FieldType.TIME)
FIELDS: Fields = {
    "metadata": Field(FieldType.METADATA),
    "kind": Field(FieldType.CHOICE, tuple(SessionKind)),
    "id": _TEXT,
    "name": _TEXT,
    "agent_id": _TEXT,
    "user_id": _TEXT,
    "namespace": _TEXT,
    "store_types": Field(FieldType.TEXTS, STORE_TYPES),
    "last_agent": _TEXT,
    "created_at": _TIME,
    "expires_at": _TIME,
    "ttl_seconds": Field(FieldType.NUMBER),
}


def column_of(comparison: Comparison) -> ColumnElement[Any]:
    """Return the column of a condition's field."""
    if comparison.type is FieldType.METADATA:
        metadata: ColumnElement[str] = session.c.metadata[comparison.metadata_name].astext
        return metadata
    return session.c[comparison.field]
