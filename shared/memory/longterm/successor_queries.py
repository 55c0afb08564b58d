"""Find what archived memories became: one statement over the chain of successors."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import LargeBinary, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation.scope import Scope
from shared.infra import prepared

# The chain of successors is followed to its end: a raw memory may be enriched, its successor merged, and the
# merged one merged again. `UNION` drops what was reached before, so a cycle ends.
_FIND_LIVE_SUCCESSORS = text(
    """
    WITH RECURSIVE chain AS (
        SELECT m.fingerprint, m.archived_at AS since, successor.id
        FROM memory m CROSS JOIN LATERAL unnest(m.superseded_by) AS successor (id)
        WHERE m.tenant = :tenant AND m.agent_id = :agent_id
          AND m.user_id IS NOT DISTINCT FROM CAST(:user_id AS text)
          AND m.fingerprint = ANY (:fingerprints) AND m.archived_at IS NOT NULL
        UNION
        SELECT chain.fingerprint, chain.since, successor.id
        FROM chain JOIN memory m ON m.tenant = :tenant AND m.id = chain.id AND m.archived_at IS NOT NULL
        CROSS JOIN LATERAL unnest(m.superseded_by) AS successor (id)
    )
    SELECT chain.fingerprint, chain.since, live.id
    FROM chain JOIN memory live ON live.tenant = :tenant AND live.id = chain.id AND live.archived_at IS NULL
      AND live.agent_id = :agent_id AND live.user_id IS NOT DISTINCT FROM CAST(:user_id AS text)
    ORDER BY chain.since, live.id
    """
).bindparams(bindparam("fingerprints", type_=ARRAY(LargeBinary)))


async def find_live_successors(
    connection: AsyncConnection, scope: Scope, fingerprints: Sequence[bytes]
) -> dict[bytes, list[str]]:
    """Return the ids of the live memories that archived ones with these fingerprints became at last.

    If several archived memories have the same fingerprint, the last one counts whose chain has a live end.
    """
    values: dict[str, Any] = {
        "tenant": scope.tenant,
        "agent_id": scope.agent_id,
        "user_id": scope.user_id,
    }
    values |= {"fingerprints": list(fingerprints)}
    rows = await prepared.fetch(connection, _FIND_LIVE_SUCCESSORS, values)
    by_archived: dict[bytes, dict[datetime, list[str]]] = {}
    for row in rows:
        by_since = by_archived.setdefault(bytes(row["fingerprint"]), {})
        by_since.setdefault(row["since"], []).append(row["id"])
    return {fingerprint: ids[max(ids)] for fingerprint, ids in by_archived.items()}
