"""The statements that find what is connected with entities, breadth first."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ARRAY, DateTime, Text, bindparam, text

from shared.foundation.scope import Scope
from shared.infra import prepared
from shared.infra.transaction import Transaction
from shared.memory.graph.entity_queries import TOUCH
from shared.memory.graph.match_queries import MATCH, MATCH_PARAMETERS, match_values
from shared.memory.graph.traversal import Step

# The best triples of `node` in one direction, with the entity at the other end. Half of the width is enough
# for a hop that shows all of them; the other half replaces those that an earlier hop has shown.
_BEST = """
    (SELECT t.id, t.{other} AS other, t.confidence
     FROM graph_triple t LEFT JOIN graph_entity o ON o.tenant = t.tenant AND o.id = t.{other}
     WHERE t.tenant = :tenant AND t.{this} = node.id AND t.agent_id = :agent_id
        AND (t.user_id IS NULL OR t.user_id = CAST(:user_id AS text))
        AND (t.valid_at IS NULL OR t.valid_at <= moment.at)
        AND (t.invalid_at IS NULL OR t.invalid_at > moment.at)
        AND (t.expired_at IS NULL OR t.expired_at > moment.at)
        AND (o.expired_at IS NULL OR o.expired_at > moment.at)
     ORDER BY t.confidence DESC, t.id LIMIT :width)
"""
_BOTH = (
    _BEST.format(this="subject_id", other="object_id")
    + "UNION ALL"
    + _BEST.format(this="object_id", other="subject_id")
)
# UNION drops what was reached at the same distance before, and the distance ends every cycle.
_FROM_SEEDS = f"""
    moment (at) AS (SELECT coalesce(CAST(:as_of AS timestamptz), now())),
    node (id, hop) AS (
        SELECT seed.id, 1 FROM {{seeds}} AS seed (id)
        UNION
        SELECT best.other, node.hop + 1
        FROM node CROSS JOIN moment CROSS JOIN LATERAL ({_BOTH}) AS best
        WHERE node.hop < :hops AND best.other IS NOT NULL
    ),
    nearest AS (SELECT id, min(hop) AS hop FROM node GROUP BY id),
    reached AS (
        SELECT best.id, min(node.hop) AS hop
        FROM nearest AS node CROSS JOIN moment CROSS JOIN LATERAL ({_BOTH}) AS best
        GROUP BY best.id
    )
    SELECT t.id, r.hop, t.subject_id, t.object_id, t.predicate, t.confidence, t.fact, t.valid_at,
           t.invalid_at, t.user_id, s.name AS subject, coalesce(o.name, t.literal) AS object
    FROM reached r
    JOIN graph_triple t ON t.tenant = :tenant AND t.id = r.id
    JOIN graph_entity s ON s.tenant = :tenant AND s.id = t.subject_id
    LEFT JOIN graph_entity o ON o.tenant = :tenant AND o.id = t.object_id
    ORDER BY r.hop, t.confidence DESC, t.id LIMIT :width
"""  # noqa: S608  (of names of columns)
_TRAVERSE = text("WITH RECURSIVE" + _FROM_SEEDS.format(seeds="unnest(:entity_ids)")).bindparams(
    bindparam("entity_ids", type_=ARRAY(Text)),
    bindparam("user_id", type_=Text),
    bindparam("as_of", type_=DateTime(timezone=True)),
)
# In one statement, because each one costs a context more than what it reads.
_CONNECTED = text(
    "WITH RECURSIVE matched AS ({match}), touched AS ({touch}), ".format(
        match=MATCH, touch=TOUCH.format(is_meant="id IN (SELECT id FROM matched)")
    )
    + _FROM_SEEDS.format(seeds="(SELECT id FROM matched)")
).bindparams(*MATCH_PARAMETERS)


async def list_connected(
    tx: Transaction, scope: Scope, entity_ids: Sequence[str], *, hops: int, width: int, as_of: datetime | None
) -> list[Step]:
    """Return up to `width` triples that a scope sees, by distance from the entities, then by confidence.

    Each of the entities that are reached leads on through its `width` best triples in each direction, so
    the cost is bounded. The first half of the answer is exact all the same.
    """
    values = {"entity_ids": list(entity_ids), "hops": hops, "width": width, "as_of": as_of}
    rows = await tx.fetch(_TRAVERSE, prepared.scope_values(scope) | values)
    return [Step.from_row(row) for row in rows]


async def list_named_in_message(
    tx: Transaction, scope: Scope, words: Sequence[str], *, seeds: int, hops: int, width: int
) -> list[Step]:
    """Return what is connected now with the entities that a message names, and note that it names them.

    `words` are those of the message; of its entities, up to `seeds` count. Otherwise as `list_connected`.
    """
    if (values := match_values(scope, words, None, seeds)) is None:
        return []
    rows = await tx.fetch(_CONNECTED, values | {"hops": hops, "width": width})
    return [Step.from_row(row) for row in rows]
