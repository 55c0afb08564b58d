"""Do a request once: the answer is stored in the transaction that did the work.

There is no "running" state to get stuck: while the first is at work it holds an advisory lock
that ends with its transaction, and a twin that meets the lock is told to come back.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from shared import errors
from shared.clients.postgres import owned_by
from shared.idempotency.table import answer


@dataclass(frozen=True, slots=True)
class RequestKey:
    """What a caller names a request by: the route, its own key, and a digest of the body."""

    route: str
    key: str
    digest: bytes


async def recall(connection: AsyncConnection, tenant: str, request: RequestKey | None) -> Any | None:
    """Return the stored answer to this request, or None if it is to be done now.

    Raises errors.Busy while a twin is at work, and errors.Conflict when the key was used with
    another body or when what it answered has been erased.
    """
    if request is None:
        return None
    if not await connection.scalar(select(func.pg_try_advisory_xact_lock(_lock(tenant, request)))):
        raise errors.Busy("a request with this Idempotency-Key is still running")
    mine = (owned_by(answer, tenant), answer.c.route == request.route, answer.c.key == request.key)
    row = (await connection.execute(select(answer).where(*mine))).mappings().one_or_none()
    if row is None:
        return None
    if row["request_digest"] != request.digest:
        raise errors.Conflict("this Idempotency-Key was used with another body")
    if row["body"] is None:
        raise errors.Conflict("what this request stored has been erased since")
    return row["body"]


def _lock(tenant: str, request: RequestKey) -> int:
    name = f"{tenant}\x1f{request.route}\x1f{request.key}".encode()
    return int.from_bytes(hashlib.sha256(name).digest()[:8], "big", signed=True)


async def keep(
    connection: AsyncConnection,
    tenant: str,
    request: RequestKey | None,
    body: Any,
    *,
    refs: Sequence[str] = (),
    user_id: str | None = None,
) -> None:
    """Store the answer beside the work that it tells of."""
    if request is None:
        return
    values = {"tenant": tenant, "route": request.route, "key": request.key, "request_digest": request.digest}
    await connection.execute(
        insert(answer).values(values | {"body": body, "refs": list(refs), "user_id": user_id})
    )


async def blank(connection: AsyncConnection, tenant: str, refs: Sequence[str]) -> None:
    """Erase the answers that repeat the text of these records."""
    mine = (owned_by(answer, tenant), answer.c.refs.overlap(list(refs)))
    await connection.execute(update(answer).where(*mine).values(body=None))


async def blank_user(connection: AsyncConnection, tenant: str, user_id: str) -> int:
    """Erase the answers given to a user; return how many."""
    mine = (owned_by(answer, tenant), answer.c.user_id == user_id, answer.c.body.is_not(None))
    return (await connection.execute(update(answer).where(*mine).values(body=None))).rowcount


async def expire(connection: AsyncConnection, tenant: str, age: timedelta) -> int:
    """Delete answers older than `age`; return how many."""
    old = answer.c.created_at < func.now() - age
    return (await connection.execute(delete(answer).where(owned_by(answer, tenant), old))).rowcount
