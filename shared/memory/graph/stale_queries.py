"""The statements that find what of a graph a dream may invalidate."""

from datetime import datetime

from sqlalchemy import ColumnElement, and_, exists, func, or_, select

from shared.foundation.scope import Scope
from shared.infra.postgres import exact_scope
from shared.infra.transaction import Transaction
from shared.memory.graph.entity import EntityType
from shared.memory.graph.table import graph_entity, graph_triple

MIN_CONFIDENCE = 0.4
"""A triple below this that nobody has confirmed for some days is doubtful."""


async def list_doubtful_triples(tx: Transaction, scope: Scope, before: datetime, limit: int) -> list[str]:
    """Return triples of exactly this scope of little confidence that were written before a time, by id."""
    columns = graph_triple.c
    is_doubtful = (columns.confidence < MIN_CONFIDENCE, columns.created_at < before)
    is_live = (columns.expired_at.is_(None), ~columns.is_kept)
    statement = select(columns.id).where(exact_scope(graph_triple, scope), *is_doubtful, *is_live)
    return list((await tx.scalars(statement.order_by(columns.id).limit(limit))).all())


async def list_stale_events(tx: Transaction, scope: Scope, before: datetime, limit: int) -> list[str]:
    """Return events of exactly this scope that no message was about, saved before a time, by id."""
    return await _list_unreferenced(tx, scope, before, limit, graph_entity.c.type == EntityType.EVENT)


async def list_orphans(tx: Transaction, scope: Scope, before: datetime, limit: int) -> list[str]:
    """Return entities that no message was about and no triple names, saved before a time, by id.

    A person is none: whom somebody has named is worth knowing.
    """
    triple = graph_triple.c
    is_named = exists(
        select(triple.id).where(
            triple.tenant == graph_entity.c.tenant,
            or_(triple.subject_id == graph_entity.c.id, triple.object_id == graph_entity.c.id),
            triple.expired_at.is_(None),
        )
    )
    is_other = graph_entity.c.type != EntityType.PERSON
    return await _list_unreferenced(tx, scope, before, limit, and_(is_other, ~is_named))


async def _list_unreferenced(
    tx: Transaction, scope: Scope, before: datetime, limit: int, condition: ColumnElement[bool]
) -> list[str]:
    columns = graph_entity.c
    written_at = func.coalesce(columns.updated_at, columns.created_at)
    is_unreferenced = (columns.last_referenced_at.is_(None), written_at < before)
    is_live = (columns.expired_at.is_(None), ~columns.is_kept)
    where = (exact_scope(graph_entity, scope), *is_unreferenced, *is_live, condition)
    statement = select(columns.id).where(*where).order_by(columns.id).limit(limit)
    return list((await tx.scalars(statement)).all())
