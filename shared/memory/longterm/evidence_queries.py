"""The statement that follows evidence to the memories that it became."""

from collections.abc import Sequence

from sqlalchemy import Text, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY

from shared.foundation.scope import Scope
from shared.infra import prepared
from shared.infra.transaction import Transaction

# `OFFSET 0` has each id looked up by its index, whatever Postgres knows about the table (`key_look_up`).
# The lineage never leaves the agent and the user whose the evidence is. `UNION` drops what was reached
# before, so a cycle ends. What `IS_EVIDENCE` means stands in the second `WHERE`, and in that of the chain.
_LIST = text(
    """
    WITH RECURSIVE evidence AS MATERIALIZED (
        SELECT row.* FROM unnest(CAST(:ids AS text[])) AS wanted (id) CROSS JOIN LATERAL (
            SELECT m.* FROM memory m WHERE m.tenant = :tenant AND m.id = wanted.id OFFSET 0) AS row
        WHERE row.archived_by IN ('enrichment', 'dream') AND row.valid_until IS NULL
          AND (row.expires_at IS NULL OR row.expires_at > now())
          AND ((row.agent_id = :agent_id
                AND (row.user_id IS NULL OR row.user_id = CAST(:user_id AS text)))
               OR (row.agent_id = ANY (:sharing_agents) AND row.user_id IS NULL))
    ), lineage AS (
        SELECT e.id AS evidence_id, e.agent_id, e.user_id, successor.id
        FROM evidence e CROSS JOIN LATERAL unnest(e.superseded_by) AS successor (id)
        UNION
        SELECT lineage.evidence_id, m.agent_id, m.user_id, successor.id
        FROM lineage CROSS JOIN LATERAL (
            SELECT step.* FROM memory step WHERE step.tenant = :tenant AND step.id = lineage.id OFFSET 0) AS m
        CROSS JOIN LATERAL unnest(m.superseded_by) AS successor (id)
        WHERE m.archived_by IN ('enrichment', 'dream') AND m.valid_until IS NULL
          AND m.agent_id = lineage.agent_id AND m.user_id IS NOT DISTINCT FROM lineage.user_id
    )
    SELECT e.id, e.version, e.agent_id, e.user_id, e.content, e.category, e.tags,
           e.sources -> 0 ->> 'speaker' AS speaker, e.sources -> 0 ->> 'role' AS role,
           CAST(timezone('UTC', coalesce(e.occurred_at, e.created_at)) AS date) AS day,
           CAST(extract(epoch FROM coalesce(e.valid_from, e.occurred_at, e.last_seen_at)) AS float8) AS since,
           (SELECT array_agg(lineage.id) FROM lineage WHERE lineage.evidence_id = e.id) AS successor_ids
    FROM evidence e
    WHERE cardinality(e.superseded_by) > 0
    """
).bindparams(bindparam("ids", type_=ARRAY(Text)), bindparam("sharing_agents", type_=ARRAY(Text)))


async def list_evidence(
    tx: Transaction, scope: Scope, sharing_agents: Sequence[str], ids: Sequence[str]
) -> list[prepared.Row]:
    """Return the rows of those of these memories that are evidence and that the scope sees.

    `successor_ids` are all memories that they became, at once or at last. Whether one is live, visible and
    matches, its own row tells.
    """
    values = prepared.scope_values(scope) | {"ids": list(ids), "sharing_agents": list(sharing_agents)}
    return await tx.fetch(_LIST, values)
