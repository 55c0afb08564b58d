"""What preferences are as a kind of record."""

from sqlalchemy import ColumnElement, FromClause, and_

from shared.foundation.content import Subject
from shared.foundation.stages import RecordKind
from shared.memory.longterm import standing
from shared.memory.preferences import index_document
from shared.memory.preferences.preference import Preference
from shared.memory.preferences.table import preference
from shared.records.record_type import RecordType


def is_suspended(table: FromClause) -> ColumnElement[bool]:
    """Return the condition that the memory of a learnt preference does not stand."""
    return and_(table.c.memory_id.is_not(None), ~standing.stands(table.c.tenant, table.c.memory_id))


IS_DESCRIBED = preference.c.description.is_not(None)
PREFERENCE = RecordType(
    kind=RecordKind.PREFERENCE,
    table=preference,
    from_row=Preference.from_row,
    search_text=lambda columns: columns.get("description") or "",
    document=index_document.document,
    subjects=(Subject.PREFERENCE, Subject.MEMORY, Subject.USER, Subject.AGENT),
    computed=(is_suspended(preference).label("is_suspended"),),
    searchable=IS_DESCRIBED,
)
