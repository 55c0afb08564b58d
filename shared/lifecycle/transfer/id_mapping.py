"""Which id an imported entry gets: its own where it can, else one that follows from its own.

An id is unique in a tenant, so an entry that another agent or user holds can't have it twice. The
new id is computed, not drawn: the same import finds the same entry again, and an entry can name
another whose line has not been read yet. Keyed with the tenant's secret, so that nobody can take
the id that somebody else's entry is going to have.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation.scope import Scope
from shared.memory.longterm import scope_queries
from shared.platform.auth import queries as auth_queries

_OURS = re.compile(r"[0-9a-f]{12}")
# A computed id of 48 bits may be another scope's by chance; that its second is too, is not to be met.
_DRAWS = 3


def normalize_id(told: str) -> str | None:
    """Return the id that a line names if it can be one here: twelve hex digits, in small letters."""
    lowered = told.lower()
    return lowered if _OURS.fullmatch(lowered) else None


async def map_ids(connection: AsyncConnection, scope: Scope, told: Iterable[str]) -> dict[str, str]:
    """Return the id that each of these stands for in a scope: never one of another scope."""
    secret = await auth_queries.get_tenant_secret(connection, scope.tenant)
    wanted = {one: _candidates(secret, scope, one) for one in told}
    taken = await scope_queries.ids_in_other_scopes(
        connection, scope, {id_ for ids in wanted.values() for id_ in ids}
    )
    return {one: next(id_ for id_ in ids if id_ not in taken) for one, ids in wanted.items()}


def _candidates(secret: bytes, scope: Scope, told: str) -> list[str]:
    kept = normalize_id(told)
    name = "\x1f".join((scope.agent_id, scope.user_id or "", kept or told))
    drawn = [hmac.new(secret, f"{draw}\x1f{name}".encode(), hashlib.sha256) for draw in range(_DRAWS)]
    return [*([kept] if kept else []), *(one.hexdigest()[:12] for one in drawn)]
