"""Find what a text that is saved again continues: an archived memory, or what it became at last."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import LargeBinary, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY

from shared.foundation.scope import Scope
from shared.infra import prepared
from shared.infra.transaction import Transaction

# The chain of successors is followed to its end: a raw memory may be enriched, its successor merged, and the
# merged one merged again. `UNION` drops what was reached before, so a cycle ends. A closed memory is not part
# of a chain, because what succeeds it says something else.
_FIND_SAVED_BEFORE = text(
    """
    WITH RECURSIVE archived AS MATERIALIZED (
        SELECT m.id, m.fingerprint, m.archived_at, m.archived_by, m.superseded_by,
               m.expires_at IS NULL OR m.expires_at > now() AS is_unexpired
        FROM memory m
        WHERE m.tenant = :tenant AND m.agent_id = :agent_id
          AND m.user_id IS NOT DISTINCT FROM CAST(:user_id AS text)
          AND m.fingerprint = ANY (:fingerprints) AND m.archived_at IS NOT NULL
          AND m.key IS NULL AND m.valid_until IS NULL
    ), chain AS (
        SELECT archived.fingerprint, archived.archived_at AS since, successor.id
        FROM archived CROSS JOIN LATERAL unnest(archived.superseded_by) AS successor (id)
        UNION
        SELECT chain.fingerprint, chain.since, successor.id
        FROM chain JOIN memory m ON m.tenant = :tenant AND m.id = chain.id AND m.archived_at IS NOT NULL
          AND m.valid_until IS NULL
        CROSS JOIN LATERAL unnest(m.superseded_by) AS successor (id)
    )
    SELECT chain.fingerprint, chain.since, live.id, false AS is_restorable
    FROM chain JOIN memory live ON live.tenant = :tenant AND live.id = chain.id AND live.archived_at IS NULL
      AND live.agent_id = :agent_id AND live.user_id IS NOT DISTINCT FROM CAST(:user_id AS text)
      AND live.key IS NULL AND live.valid_until IS NULL
      AND (live.expires_at IS NULL OR live.expires_at > now())
    UNION ALL
    SELECT archived.fingerprint, archived.archived_at, archived.id, true
    FROM archived WHERE archived.archived_by = 'caller' AND archived.is_unexpired AND NOT EXISTS (
        SELECT FROM memory live
        WHERE live.tenant = :tenant AND live.agent_id = :agent_id
          AND live.user_id IS NOT DISTINCT FROM CAST(:user_id AS text)
          AND live.fingerprint = archived.fingerprint AND live.archived_at IS NULL
          AND live.key IS NULL AND live.valid_until IS NULL)
    ORDER BY since, id
    """
).bindparams(bindparam("fingerprints", type_=ARRAY(LargeBinary)))


class SavedBefore(NamedTuple):
    """The memories that a save continues: live successors, or the one that a caller archived."""

    ids: list[str]
    is_restorable: bool


async def find_saved_before(
    tx: Transaction, scope: Scope, fingerprints: Sequence[bytes]
) -> dict[bytes, SavedBefore]:
    """Return what a save of each of these fingerprints continues, if there is something.

    That is what archived memories with the fingerprint became at last, or one that a caller archived. Of
    several archived memories the last one counts that leads to either.
    """
    values = prepared.scope_values(scope) | {"fingerprints": list(fingerprints)}
    last: dict[bytes, tuple[object, SavedBefore]] = {}
    for row in await tx.fetch(_FIND_SAVED_BEFORE, values):
        fingerprint, group = bytes(row["fingerprint"]), (row["since"], row["is_restorable"])
        if fingerprint not in last or last[fingerprint][0] != group:
            last[fingerprint] = group, SavedBefore([], row["is_restorable"])
        last[fingerprint][1].ids.append(row["id"])
    return {fingerprint: saved_before for fingerprint, (_, saved_before) in last.items()}
