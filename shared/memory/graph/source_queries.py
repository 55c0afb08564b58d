"""The statements on sources: what was extracted from turns and memories that go, and what undo takes back."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Column, ColumnElement, Table, and_, delete, exists, or_, select

from shared.infra.postgres import is_any_of, is_any_turn_of, tenant_filter
from shared.infra.transaction import Transaction
from shared.memory.graph.table import graph_entity, graph_source, graph_triple
from shared.memory.graph.triple import TripleSource


async def lock_derived_from(
    tx: Transaction, *, turn_keys: Sequence[tuple[str, int]] = (), memory_ids: Sequence[str] = ()
) -> tuple[list[str], list[str]]:
    """Lock the entities and triples that were extracted from these sources alone; return their ids."""
    columns = graph_source.c
    named = [is_any_of(columns.memory_id, memory_ids)]
    if turn_keys:
        named.append(is_any_turn_of(columns.session_id, columns.seq, turn_keys))
    is_named = and_(tenant_filter(graph_source, tx.tenant), or_(*named))
    return (
        await _lock_without_others(tx, graph_entity, columns.entity_id, is_named),
        await _lock_without_others(tx, graph_triple, columns.triple_id, is_named),
    )


async def _lock_without_others(
    tx: Transaction, table: Table, record_id: Column[str], is_named: ColumnElement[bool]
) -> list[str]:
    other = graph_source.alias("other_source")
    is_same_record = and_(tenant_filter(other, tx.tenant), other.c[record_id.name] == record_id)
    named_too = select(graph_source.c.id).where(is_named)
    has_other = exists(select(other.c.id).where(is_same_record, other.c.id.not_in(named_too)))
    derived_alone = select(record_id).where(is_named, record_id.is_not(None), ~has_other)
    where = (tenant_filter(table, tx.tenant), table.c.is_derived, table.c.id.in_(derived_alone))
    statement = select(table.c.id).where(*where).order_by(table.c.id).with_for_update()
    return list((await tx.scalars(statement)).all())


async def delete_sources(tx: Transaction, record: Mapping[str, str], sources: Sequence[TripleSource]) -> None:
    """Take sources from a record, which is its `triple_id` or its `entity_id`."""
    (name, id_), *_ = record.items()
    for source in sources:
        named = [graph_source.c[field].is_not_distinct_from(value) for field, value in source]
        where = (tenant_filter(graph_source, tx.tenant), graph_source.c[name] == id_, *named)
        await tx.execute(delete(graph_source).where(*where))
