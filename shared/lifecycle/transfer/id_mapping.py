"""Choose the id of an imported memory: its own if possible, else one computed from its own.

An id is unique within a tenant, so the id of another scope's memory can't be used twice. The new id is
computed, not random: a repeated import finds the same memory, and a line can refer to a line that was
not read yet. The computation is keyed with the tenant's secret, so that nobody can occupy the id that
another scope's memory is going to get.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable

from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from shared.memory.longterm import scope_queries
from shared.platform.auth import queries as auth_queries

_VALID_ID = re.compile(r"[0-9a-f]{12}")
# A computed id of 48 bits may be in use in another scope by chance. That three are is out of the question.
_COMPUTED_IDS = 3


def normalize_id(line_id: str) -> str | None:
    """Return a line's id in lower case if it is valid here (twelve hexadecimal digits), or None."""
    lowered = line_id.lower()
    return lowered if _VALID_ID.fullmatch(lowered) else None


async def map_ids(tx: Transaction, scope: Scope, line_ids: Iterable[str]) -> dict[str, str]:
    """Return the id in this scope for each id of a line. It is never in use in another scope."""
    secret = await auth_queries.get_tenant_secret(tx, scope.tenant)
    candidates = {line_id: _candidate_ids(secret, scope, line_id) for line_id in line_ids}
    all_candidates = {candidate for ids in candidates.values() for candidate in ids}
    used_ids = await scope_queries.ids_in_other_scopes(tx, scope, all_candidates)
    return {
        line_id: next(candidate for candidate in ids if candidate not in used_ids)
        for line_id, ids in candidates.items()
    }


def _candidate_ids(secret: bytes, scope: Scope, line_id: str) -> list[str]:
    own_id = normalize_id(line_id)
    name = "\x1f".join((scope.agent_id, scope.user_id or "", own_id or line_id))
    digests = [
        hmac.new(secret, f"{number}\x1f{name}".encode(), hashlib.sha256) for number in range(_COMPUTED_IDS)
    ]
    return [*([own_id] if own_id else []), *(digest.hexdigest()[:12] for digest in digests)]
