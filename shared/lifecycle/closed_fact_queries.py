"""The statements that find triples whose memories were closed, and those that hold again."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ARRAY, Text, bindparam, text

from shared.foundation.scope import Scope
from shared.infra import prepared
from shared.infra.transaction import Transaction

# A triple is over if it comes from a closed memory of its own scope and if nothing else that it comes from
# stands: neither another memory that its scope sees, or what that was merged into, nor a turn, unless a
# closed memory comes from it too.
_FROM_CLOSED = text(
    """
    SELECT t.id, max(m.valid_until) AS ended_at, array_agg(DISTINCT m.id) AS memory_ids
    FROM memory m
    JOIN graph_source s ON s.tenant = m.tenant AND s.memory_id = m.id
    JOIN graph_triple t ON t.tenant = s.tenant AND t.id = s.triple_id AND t.agent_id = m.agent_id
        AND t.user_id IS NOT DISTINCT FROM m.user_id
    WHERE m.tenant = :tenant AND m.agent_id = :agent_id
        AND m.user_id IS NOT DISTINCT FROM CAST(:user_id AS text) AND m.valid_until <= now()
        AND (CAST(:memory_ids AS text[]) IS NULL OR m.id = ANY (:memory_ids))
        AND t.expired_at IS NULL AND (t.invalid_at IS NULL OR t.invalid_at > m.valid_until)
        AND NOT (t.is_kept AND :keeps)
        AND NOT EXISTS (
            SELECT FROM graph_source o JOIN memory om ON om.tenant = o.tenant AND om.id = o.memory_id
            WHERE o.tenant = t.tenant AND o.triple_id = t.id AND om.agent_id = t.agent_id
                AND (om.user_id IS NULL OR om.user_id = t.user_id) AND memory_stands(o.tenant, o.memory_id)
        )
        AND NOT EXISTS (
            SELECT FROM graph_source o
            WHERE o.tenant = t.tenant AND o.triple_id = t.id AND o.session_id IS NOT NULL AND NOT EXISTS (
                SELECT FROM graph_source c
                JOIN memory cm ON cm.tenant = c.tenant AND cm.id = c.memory_id AND cm.valid_until <= now()
                CROSS JOIN LATERAL jsonb_to_recordset(cm.sources)
                    AS turn (session_id text, first_seq integer, seq integer)
                WHERE c.tenant = t.tenant AND c.triple_id = t.id AND turn.session_id = o.session_id
                    AND o.seq BETWEEN coalesce(turn.first_seq, turn.seq) AND turn.seq
            )
        )
    GROUP BY t.id ORDER BY t.id LIMIT :limit
    """
).bindparams(bindparam("memory_ids", type_=ARRAY(Text)))


async def list_over(
    tx: Transaction, scope: Scope, memory_ids: Sequence[str] | None, *, keeps: bool, limit: int
) -> dict[str, tuple[datetime, list[str]]]:
    """Return open triples of exactly this scope whose sources are over: since when, and which memories.

    Of these memories, or of all that are closed if none are given. `keeps` leaves out what somebody has
    restored.
    """
    ids = None if memory_ids is None else list(memory_ids)
    values = prepared.scope_values(scope) | {"memory_ids": ids, "keeps": keeps, "limit": limit}
    rows = await tx.fetch(_FROM_CLOSED, values)
    return {row["id"]: (row["ended_at"], list(row["memory_ids"])) for row in rows}


_INVALIDATED = text(
    """
    SELECT DISTINCT t.id FROM graph_source s
    JOIN graph_triple t ON t.tenant = s.tenant AND t.id = s.triple_id
    WHERE s.tenant = :tenant AND s.memory_id = ANY (:memory_ids) AND t.agent_id = :agent_id
        AND t.user_id IS NOT DISTINCT FROM CAST(:user_id AS text)
        AND t.expired_at IS NOT NULL AND t.reason = :reason
    """
).bindparams(bindparam("memory_ids", type_=ARRAY(Text)))


async def list_invalidated(
    tx: Transaction, scope: Scope, memory_ids: Sequence[str], reason: str
) -> list[str]:
    """Return the triples of exactly this scope from these memories that were invalidated for a reason."""
    values = prepared.scope_values(scope) | {"memory_ids": list(memory_ids), "reason": reason}
    return [row["id"] for row in await tx.fetch(_INVALIDATED, values)]
