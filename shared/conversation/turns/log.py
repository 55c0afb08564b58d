"""The log of a session: all its turns by pages, and single ones."""

from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session
from shared.conversation.turns import log_queries
from shared.conversation.turns.turn import Turn
from shared.foundation import errors, versions
from shared.foundation.scope import Caller
from shared.foundation.versions import ABSENT, Expected
from shared.infra.transaction import Transaction
from shared.platform.resources import Resources


async def read_page(
    resources: Resources, caller: Caller, session_id: str, after_seq: int, limit: int
) -> list[Turn]:
    """Return up to `limit` turns of a session that follow the number `after_seq`, in their order.

    Raises errors.NotFound for a session that the caller may not see.
    """
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        session = await get_session(tx, resources.settings, caller, session_id)
        return await log_queries.list_page(tx, session.id, after_seq, limit)


async def read_page_before(
    resources: Resources, caller: Caller, session_id: str, before_seq: int, limit: int
) -> list[Turn]:
    """Return up to `limit` turns of a session that precede the number `before_seq`, in their order.

    Raises errors.NotFound for a session that the caller may not see.
    """
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        session = await get_session(tx, resources.settings, caller, session_id)
        return await log_queries.list_page_before(tx, session.id, before_seq, limit)


async def read_turn(resources: Resources, caller: Caller, session_id: str, seq: int) -> Turn:
    """Return a turn. Raises errors.NotFound if there is no such turn that the caller may see."""
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        session = await get_session(tx, resources.settings, caller, session_id)
        return await require_turn(tx, session, seq)


async def require_turn(tx: Transaction, session: Session, seq: int) -> Turn:
    """Return a turn of a session. Raises errors.NotFound if there is none."""
    turn = await log_queries.get(tx, session.id, seq)
    if turn is None:
        raise errors.NotFound(f"turn not found: {seq} of session '{session.id}'")
    return turn


def check_version(seq: int, turn: Turn | None, expected: Expected | None) -> None:
    """Raise errors.PreconditionFailed unless a turn has an expected version; None expects nothing."""
    versions.check(f"turn {seq}", ABSENT if turn is None else turn.version, expected)
