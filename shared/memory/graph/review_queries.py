"""The statements of a dream that compares entities: which ones, with what, and what is said of them."""

from collections.abc import Sequence

from sqlalchemy import ARRAY, Text, bindparam, exists, func, or_, select, text, update

from shared.foundation.scope import Scope
from shared.infra import prepared
from shared.infra.postgres import exact_scope, is_any_of, tenant_filter
from shared.infra.transaction import Transaction
from shared.memory.graph import triple_queries
from shared.memory.graph.table import graph_entity, graph_source, graph_triple
from shared.memory.graph.triple import Triple, TripleSource


async def list_unreviewed(tx: Transaction, scope: Scope, limit: int) -> list[str]:
    """Return live entities of exactly this scope that are new, or have changed, since their last review.

    One has changed too if something was said of it since. Those that never were reviewed come first.
    """
    columns, triple = graph_entity.c, graph_triple.c
    written_at = func.coalesce(columns.updated_at, columns.created_at)
    is_said = exists(
        select(triple.id).where(
            triple.tenant == columns.tenant,
            triple.subject_id == columns.id,
            triple.expired_at.is_(None),
            triple.created_at > columns.reviewed_at,
        )
    )
    has_changed = or_(columns.reviewed_at.is_(None), written_at > columns.reviewed_at, is_said)
    where = (exact_scope(graph_entity, scope), columns.expired_at.is_(None), ~columns.is_kept, has_changed)
    order = (columns.reviewed_at.asc().nulls_first(), columns.id)
    statement = select(columns.id).where(*where).order_by(*order).limit(limit)
    return list((await tx.scalars(statement)).all())


# Names that are one of these forms, and names that begin with one as a whole word. Of a form that many names
# begin with, none is telling.
_ALIKE = text(
    """
    SELECT f.entity_id, n.entity_id AS other_id
    FROM unnest(:entity_ids, :forms) AS f (entity_id, form)
    CROSS JOIN LATERAL (
        (SELECT a.entity_id, a.user_id FROM graph_name a
         WHERE a.tenant = :tenant AND a.agent_id = :agent_id AND a.folded = f.form
            AND a.user_id IS NOT DISTINCT FROM CAST(:user_id AS text) LIMIT :width)
        UNION ALL
        (SELECT b.entity_id, b.user_id FROM graph_name b
         WHERE b.tenant = :tenant AND b.agent_id = :agent_id
            AND b.folded ~>=~ (f.form || ' ') AND b.folded ~<~ (f.form || '!')
            AND b.user_id IS NOT DISTINCT FROM CAST(:user_id AS text) LIMIT :width)
    ) AS n
    JOIN graph_entity e ON e.tenant = :tenant AND e.id = n.entity_id
    WHERE n.entity_id <> f.entity_id AND e.expired_at IS NULL AND NOT e.is_kept
    GROUP BY f.entity_id, n.entity_id ORDER BY f.entity_id, n.entity_id
    """
).bindparams(
    bindparam("entity_ids", type_=ARRAY(Text)),
    bindparam("forms", type_=ARRAY(Text)),
    bindparam("user_id", type_=Text),
)


async def list_alike(
    tx: Transaction, scope: Scope, forms: Sequence[tuple[str, str]], width: int
) -> list[tuple[str, str]]:
    """Return pairs of live entities of exactly this scope, the second of which has a name like a form.

    `forms` are the ids of entities with folded names, or words of those. Of each, up to `width` are found.
    """
    values = {
        "entity_ids": [entity_id for entity_id, _ in forms],
        "forms": [form for _, form in forms],
        "width": width,
    }
    rows = await tx.fetch(_ALIKE, prepared.scope_values(scope) | values)
    return [(row["entity_id"], row["other_id"]) for row in rows]


_SAID = text(
    """
    SELECT t.id FROM unnest(:entity_ids) AS e (id)
    CROSS JOIN LATERAL (
        SELECT o.id FROM graph_triple o
        WHERE o.tenant = :tenant AND o.subject_id = e.id AND o.agent_id = :agent_id
            AND o.user_id IS NOT DISTINCT FROM CAST(:user_id AS text)
            AND o.expired_at IS NULL AND o.invalid_at IS NULL AND NOT o.is_kept
        ORDER BY o.confidence DESC, o.id LIMIT :width
    ) AS t
    """
).bindparams(bindparam("entity_ids", type_=ARRAY(Text)), bindparam("user_id", type_=Text))


async def list_said(tx: Transaction, scope: Scope, entity_ids: Sequence[str], width: int) -> list[Triple]:
    """Return up to `width` open triples of each of these subjects, in exactly this scope: the surest ones."""
    values = {"entity_ids": list(entity_ids), "width": width}
    rows = await tx.fetch(_SAID, prepared.scope_values(scope) | values)
    return await triple_queries.list_by_ids(tx, [row["id"] for row in rows])


async def lock_live_of(tx: Transaction, entity_id: str, limit: int) -> list[Triple]:
    """Lock the triples of an entity that were not invalidated, by id, and return up to so many."""
    columns = graph_triple.c
    names_it = or_(columns.subject_id == entity_id, columns.object_id == entity_id)
    where = (tenant_filter(graph_triple, tx.tenant), names_it, columns.expired_at.is_(None))
    ids = (await tx.scalars(select(columns.id).where(*where).order_by(columns.id).limit(limit))).all()
    locked = await triple_queries.lock(tx, ids)
    return [triple for triple in locked.values() if triple.expired_at is None]


async def list_sources(tx: Transaction, entity_id: str) -> list[TripleSource]:
    """Return where an entity comes from."""
    columns = [graph_source.c[name] for name in TripleSource.model_fields]
    where = (tenant_filter(graph_source, tx.tenant), graph_source.c.entity_id == entity_id)
    rows = await tx.execute(select(*columns).where(*where).order_by(graph_source.c.id))
    return [TripleSource.model_validate({**row}) for row in rows.mappings()]


async def mark_reviewed(tx: Transaction, ids: Sequence[str]) -> None:
    """Note that entities were compared with others, and what is said of them with each other."""
    if ids:
        where = (tenant_filter(graph_entity, tx.tenant), is_any_of(graph_entity.c.id, sorted(ids)))
        await tx.execute(update(graph_entity).where(*where).values(reviewed_at=func.now()))
