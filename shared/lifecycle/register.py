"""The register of where content lies in Postgres: what the tables declare, and deletions that walk it.

Every table says of each column what deletes it (`shared/foundation/content.py`). A deletion names its
subjects, and `forget` runs one statement for each column that names one of their kinds. A table that is
added later is reached without a change here. Rows below a deleted row are deleted by its foreign keys.

A copy of a text is stored only by a transaction that has locked the record with the text against its
deletion. A deletion locks its records first and looks for copies afterwards: it finds every copy that was
stored before, and whoever stores one later finds that the record is gone.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ARRAY,
    Column,
    ColumnElement,
    Integer,
    Table,
    Text,
    TextClause,
    Update,
    bindparam,
    delete,
    exists,
    func,
    literal,
    or_,
    select,
    text,
    true,
    update,
)

import shared.conversation.feedback.table
import shared.conversation.observations.table
import shared.conversation.scratchpad.table
import shared.conversation.sessions.table
import shared.conversation.state.table
import shared.conversation.summary.table
import shared.conversation.turns.table
import shared.jobs.table
import shared.memory.business_context.table
import shared.memory.documents.files.table
import shared.memory.documents.table
import shared.memory.graph.table
import shared.memory.longterm.table
import shared.memory.patterns.table
import shared.memory.pinned.table
import shared.memory.playbooks.table
import shared.memory.preferences.table
import shared.memory.proposals.table
import shared.memory.skills.table
import shared.platform.agents.table
import shared.platform.auth.table
import shared.platform.directives.table
import shared.platform.idempotency.table
import shared.platform.spend.table
import shared.search.index.table  # noqa: F401  (a table that is not imported would be passed over)
from shared.conversation.turns.turn import turn_key_of
from shared.conversation.turns.turn_range import ranges_of
from shared.foundation.content import INFO, Effect, Names, Subject
from shared.infra.postgres import is_any_of, is_in_turn_ranges, metadata, tenant_filter
from shared.infra.transaction import Transaction

_FEW_IDS = 100
Subjects = Mapping[Subject, Sequence[str]]
"""The ids that a deletion is about, by what they are ids of."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A column that names subjects, with its declaration."""

    column: Column[str]
    names: Names

    @property
    def table(self) -> Table:
        """The table of the column."""
        return self.column.table


def references() -> Iterator[Reference]:
    """Yield every column that names subjects: of tables below others first, as they must be deleted.

    Of one table, the columns whose subjects delete the row come first, so that no row is changed and then
    deleted.
    """
    for table in reversed(metadata.sorted_tables):
        declared = [Reference(column, column.info[INFO]) for column in table.c if _names_subjects(column)]
        yield from sorted(declared, key=lambda reference: reference.names.effect is not Effect.DELETE_ROW)


def _names_subjects(column: Column[str]) -> bool:
    return isinstance(column.info.get(INFO), Names)


async def forget(tx: Transaction, subjects: Subjects) -> Counter[str]:
    """Delete everything that the register says of these subjects; return the changed rows.

    They are counted by `table.column`, the column that names the subjects. The caller has locked the
    sessions and memories among them, in this order.
    """
    counts: Counter[str] = Counter()
    for reference in references():
        ids = _ids_of(reference, subjects)
        if ids:
            counts[str(reference.column)] += await _forget_named(tx, reference, ids)
    return counts


async def lock(tx: Transaction, table: str, subjects: Subjects) -> None:
    """Lock the rows of one table that `forget` would change."""
    for reference in references():
        ids = _ids_of(reference, subjects)
        if ids and reference.table.name == table:
            await _lock(tx, reference.table, _names_any(tx.tenant, reference, ids))


def _ids_of(reference: Reference, subjects: Subjects) -> list[str]:
    if reference.names.collected:  # the caller has collected these rows and names them by their own ids
        return []
    return [id_ for subject in sorted(reference.names.subjects) for id_ in subjects.get(subject, ())]


async def _forget_named(tx: Transaction, reference: Reference, ids: Sequence[str]) -> int:
    condition = _names_any(tx.tenant, reference, ids)
    if not await _lock(tx, reference.table, condition):
        return 0
    if reference.names.effect is Effect.DELETE_ROW:
        return (await tx.execute(delete(reference.table).where(condition))).rowcount
    if reference.names.effect is Effect.CLEAR:
        return (await tx.execute(_clear(reference, condition))).rowcount
    return (await tx.execute(_unlink(reference, condition), {"deleted_ids": list(ids)})).rowcount


def _names_any(tenant: str, reference: Reference, ids: Sequence[str]) -> ColumnElement[bool]:
    table = reference.table
    condition = tenant_filter(table, tenant) & _column_names_any(reference, ids)
    for name, value in reference.names.only:
        condition &= table.c[name] == value
    if reference.names.effect is Effect.CLEAR:  # what was cleared before is not counted again
        condition &= _has_something(reference)
    return condition


def _column_names_any(reference: Reference, ids: Sequence[str]) -> ColumnElement[bool]:
    column: ColumnElement[Any] = reference.column
    if reference.names.first_seq is not None:
        session_id, ranges = reference.table.c.session_id, ranges_of(map(turn_key_of, ids))
        return is_in_turn_ranges(session_id, _first_seq(reference), column, ranges)
    return _overlaps(column, ids) if isinstance(column.type, ARRAY) else is_any_of(column, ids)


def _overlaps(column: ColumnElement[Any], ids: Sequence[str]) -> ColumnElement[bool]:
    """Return the condition that an array has one of these ids.

    An index on the array finds few. Of many, Postgres would unpack all for each row that it compares; as a
    list of values they are hashed once.
    """
    if len(ids) <= _FEW_IDS:
        return column.bool_op("&&")(literal(list(ids), ARRAY(Text)))
    item = func.unnest(column).column_valued("item")
    return exists(select(item).where(is_any_of(item, ids)))


def _first_seq(reference: Reference) -> ColumnElement[int]:
    first_seq = reference.names.first_seq
    return reference.table.c[first_seq] if isinstance(first_seq, str) else literal(first_seq, Integer)


def _has_something(reference: Reference) -> ColumnElement[bool]:
    columns = [reference.table.c[name] for name in reference.names.columns]
    if all(column.nullable for column in columns):
        return or_(*(column.is_not(None) for column in columns))
    return true()


async def _lock(tx: Transaction, table: Table, condition: ColumnElement[bool]) -> int:
    """Lock rows in the order of their primary key, as all statements on several rows do; return how many."""
    rows = select(*table.primary_key).where(condition).order_by(*table.primary_key)
    locked = select(func.count()).select_from(rows.with_for_update().subquery())
    count: int = (await tx.execute(locked)).scalar_one()
    return count


def _clear(reference: Reference, condition: ColumnElement[bool]) -> Update:
    values = {
        name: None if reference.table.c[name].nullable else text("DEFAULT")
        for name in reference.names.columns
    }
    return update(reference.table).where(condition).values(values)


def _unlink(reference: Reference, condition: ColumnElement[bool]) -> Update:
    """Take the deleted ids out of the array, and the items with such an id out of its JSON lists."""
    array, is_kept = reference.column.name, "<> ALL (:deleted_ids)"
    values = {array: _bound(f"ARRAY(SELECT x FROM unnest({array}) x WHERE x {is_kept})")}  # noqa: S608
    for name in reference.names.columns:
        items = f"jsonb_array_elements({name}) x WHERE x ->> 'id' {is_kept}"
        values[name] = _bound(f"coalesce((SELECT jsonb_agg(x) FROM {items}), '[]')")  # noqa: S608
    return update(reference.table).where(condition).values(values)


def _bound(expression: str) -> TextClause:
    return text(expression).bindparams(bindparam("deleted_ids", type_=ARRAY(Text)))
