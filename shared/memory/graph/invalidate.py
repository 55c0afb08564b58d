"""Invalidate triples with a reason, and take that back: nothing is overwritten or lost by it."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from sqlalchemy.exc import IntegrityError

from shared.foundation import errors, validation
from shared.foundation.scope import Caller
from shared.infra.transaction import Transaction
from shared.memory.graph import triple_queries
from shared.memory.graph.triple import Triple
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area, Owner
from shared.platform.idempotency import queries as idempotency_queries
from shared.platform.resources import Resources

MAX_REASON = 500
NO_TRIPLE = "no such triple"
_Change = Callable[[Transaction, Triple], Awaitable[None]]


def check_reason(reason: str) -> str:
    """Return why something is invalidated, on one line; raise errors.Invalid if that is blank or long."""
    return validation.check_single_line(reason, "reason", MAX_REASON)


async def invalidate(
    resources: Resources, caller: Caller, triple_id: str, reason: str, invalid_at: datetime | None = None
) -> Triple:
    """Invalidate a triple from a time of the world on, which is now without one, and return it.

    Raises errors.Conflict if it was invalidated before, errors.NotFound and errors.Forbidden by the rights.
    """
    check_reason(reason)
    if invalid_at is not None:
        invalid_at = validation.check_time(invalid_at, "invalid_at")
        if invalid_at > datetime.now(UTC):
            raise errors.Invalid("invalid_at", "must not lie in the future: it holds until then")

    async def change(tx: Transaction, triple: Triple) -> None:
        if triple.expired_at is not None:
            raise errors.Conflict(f"triple {triple.id} is invalidated already")
        await triple_queries.invalidate(tx, triple.id, invalid_at, reason)

    return await _change(resources, caller, triple_id, change)


async def restore(resources: Resources, caller: Caller, triple_id: str) -> Triple:
    """Let an invalidated triple hold as it did before, and return it.

    Raises errors.Conflict if it is not invalidated, or if another one says the same by now.
    """

    async def change(tx: Transaction, triple: Triple) -> None:
        if triple.expired_at is None:
            raise errors.Conflict(f"triple {triple.id} is not invalidated")
        await triple_queries.restore(tx, triple.id)

    try:
        return await _change(resources, caller, triple_id, change)
    except IntegrityError:
        raise errors.Conflict("another triple says the same by now") from None


async def _change(resources: Resources, caller: Caller, triple_id: str, change: _Change) -> Triple:
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        found = (await triple_queries.lock(tx, [triple_id])).get(triple_id)
        triple = require(caller, found, Action.WRITE)
        await change(tx, triple)
        # A stored response shows it as it was.
        await idempotency_queries.erase_responses(tx, [triple_id])
        (changed,) = await triple_queries.list_by_ids(tx, [triple_id])
    return changed


def require(caller: Caller, triple: Triple | None, action: Action) -> Triple:
    """Return a triple that is there and with which the key may do this.

    Raise errors.NotFound or errors.Forbidden otherwise.
    """
    if triple is None:
        rights.require_area(caller, Area.MEMORIES, action)
        raise errors.NotFound(NO_TRIPLE)
    rights.require(caller, Area.MEMORIES, action, Owner(triple.agent_id, triple.user_id), NO_TRIPLE)
    return triple
