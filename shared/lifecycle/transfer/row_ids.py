"""Choose the ids of imported sessions and of rows with an id: their own if possible, else a computed one.

As with memories (`id_mapping`), an id that another scope uses can't be used twice, and the new one is
computed from it with the tenant's secret: a repeated import finds the same row, a line may refer to a session
that was not read yet, and nobody can occupy the id that another scope's row is going to get.
"""

import hashlib
import hmac
from collections.abc import Collection
from uuid import UUID

from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from shared.lifecycle.transfer import row_queries
from shared.platform.auth import queries as auth_queries


async def map_session_ids(tx: Transaction, scope: Scope, line_ids: Collection[str]) -> dict[str, str]:
    """Return for each session id of a line the id that the session has, or is to get, in this scope."""
    own, used_elsewhere = await row_queries.list_session_ids(tx, scope, sorted(line_ids))
    ids = {line_id: own.get(line_id, line_id) for line_id in line_ids}
    if not used_elsewhere:
        return ids
    secret = await auth_queries.get_tenant_secret(tx, scope.tenant)
    return ids | {line_id: _session_id(secret, scope, line_id) for line_id in used_elsewhere}


async def find_moved_sessions(tx: Transaction, scope: Scope, line_ids: Collection[str]) -> dict[str, str]:
    """Return those of `map_session_ids` that are not the line's own, and that a session here has."""
    ids = await map_session_ids(tx, scope, line_ids)
    moved = {line_id: session_id for line_id, session_id in ids.items() if line_id != session_id}
    existing, _ = await row_queries.list_session_ids(tx, scope, sorted(moved.values()))
    return {line_id: session_id for line_id, session_id in moved.items() if session_id in existing}


def _session_id(secret: bytes, scope: Scope, line_id: str) -> str:
    owner = (scope.agent_id, scope.user_id or "")
    return f"imported/{_digest(secret, 'session', *owner, line_id).hex()[:24]}"


def computed_row_id(secret: bytes, kind: str, owner_id: str, line_id: str) -> str:
    """Return the id of a row whose own id another owner's row has: a UUID made from a name."""
    return str(UUID(bytes=_digest(secret, kind, owner_id, line_id)[:16], version=5))


def _digest(secret: bytes, *names: str) -> bytes:
    return hmac.new(secret, "\x1f".join(("row", *names)).encode(), hashlib.sha256).digest()
