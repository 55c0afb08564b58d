"""The statement that finds the entities of a message by their names."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, BindParameter, DateTime, Text, bindparam, text

from shared.foundation.scope import Scope
from shared.infra import prepared
from shared.infra.transaction import Transaction
from shared.memory.graph.entity import Entity
from shared.memory.graph.names import possible_keys

MAX_NAMES = 1000
"""Names and aliases in one message up to which all of their entities are compared."""
MAX_SHARERS = 200
"""Entities of one name that are compared, of the common ones and of the user's own, in other messages."""

# An entity is found by the first words of its names; a longer name stands in the message as a whole. That is
# decided here, before any limit: else a name would be missed because many others begin as it does.
# An expired one is found at a time before that.
# The names of other users are in neither index range, so that a name that each of them has costs nothing.
MATCH = """
    WITH named AS MATERIALIZED (
        SELECT c.entity_id FROM graph_name c
        WHERE c.tenant = :tenant AND c.agent_id = :agent_id AND c.key = ANY (:keys) AND c.user_id IS NULL
            AND (c.folded = c.key OR position(' ' || c.folded || ' ' IN CAST(:words AS text)) > 0)
        UNION ALL
        SELECT o.entity_id FROM graph_name o
        WHERE o.tenant = :tenant AND o.agent_id = :agent_id AND o.key = ANY (:keys)
            AND o.user_id = CAST(:user_id AS text)
            AND (o.folded = o.key OR position(' ' || o.folded || ' ' IN CAST(:words AS text)) > 0)
        LIMIT :max_names + 1
    ),
    compared AS (
        SELECT n.entity_id FROM named n WHERE (SELECT count(*) FROM named) <= :max_names
        UNION ALL
        SELECT s.entity_id FROM unnest(:keys) AS k (key)
        CROSS JOIN LATERAL (
            (SELECT c.entity_id FROM graph_name c
             WHERE c.tenant = :tenant AND c.agent_id = :agent_id AND c.key = k.key AND c.user_id IS NULL
                AND (c.folded = c.key OR position(' ' || c.folded || ' ' IN CAST(:words AS text)) > 0)
             ORDER BY c.user_id DESC, c.entity_id DESC LIMIT :max_sharers)
            UNION ALL
            (SELECT o.entity_id FROM graph_name o
             WHERE o.tenant = :tenant AND o.agent_id = :agent_id AND o.key = k.key
                AND o.user_id = CAST(:user_id AS text)
                AND (o.folded = o.key OR position(' ' || o.folded || ' ' IN CAST(:words AS text)) > 0)
             ORDER BY o.user_id DESC, o.entity_id DESC LIMIT :max_sharers)
        ) AS s
        WHERE (SELECT count(*) FROM named) > :max_names
    )
    SELECT e.* FROM graph_entity e
    WHERE e.tenant = :tenant AND e.id = ANY (ARRAY(SELECT entity_id FROM compared))
        AND (e.expired_at IS NULL OR e.expired_at > CAST(:as_of AS timestamptz))
    ORDER BY e.last_referenced_at DESC NULLS LAST, e.id
    LIMIT :limit
"""
MATCH_PARAMETERS: tuple[BindParameter[Any], ...] = (
    bindparam("keys", type_=ARRAY(Text)),
    bindparam("user_id", type_=Text),
    bindparam("as_of", type_=DateTime(timezone=True)),
    bindparam("max_names", MAX_NAMES),
    bindparam("max_sharers", MAX_SHARERS),
)
_MATCH = text(MATCH).bindparams(*MATCH_PARAMETERS)


async def list_named_in(
    tx: Transaction, scope: Scope, words: Sequence[str], as_of: datetime | None, limit: int
) -> list[Entity]:
    """Return entities that a scope sees and of which a name stands in a message, given as its words.

    The one that was referenced last comes first. `as_of` of None is now.

    The cost is bounded. If more than 1 000 names and aliases of entities, expired ones too, stand in the
    message, then of each name only the youngest are compared: the 200 with the highest ids of the common
    entities, and as many of the user's own. An older one of these is found by its other names.
    """
    if (values := match_values(scope, words, as_of, limit)) is None:
        return []
    return [Entity.from_row(row) for row in await tx.fetch(_MATCH, values)]


def match_values(
    scope: Scope, words: Sequence[str], as_of: datetime | None, limit: int
) -> dict[str, Any] | None:
    """Return the values of the parameters of `MATCH`, or None if no name can stand in the message."""
    if not (keys := possible_keys(words)):
        return None
    values = {"keys": keys, "words": f" {' '.join(words)} ", "as_of": as_of, "limit": limit}
    return prepared.scope_values(scope) | values
