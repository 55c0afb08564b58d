"""The statement that finds which of many sessions a caller may read."""

from collections.abc import Collection

from sqlalchemy import func, or_, select

from shared.conversation.sessions.table import session
from shared.foundation.scope import Caller
from shared.infra.postgres import is_any_of, tenant_filter
from shared.infra.transaction import Transaction
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area, Owner


async def list_readable(tx: Transaction, caller: Caller, session_ids: Collection[str]) -> frozenset[str]:
    """Return which of these are the ids of sessions that have not expired and that the caller may read."""
    is_live = or_(session.c.expires_at.is_(None), session.c.expires_at > func.now())
    where = (tenant_filter(session, caller.tenant), is_any_of(session.c.id, session_ids), is_live)
    rows = await tx.execute(select(session.c.id, session.c.agent_id, session.c.user_id).where(*where))
    return frozenset(
        row.id
        for row in rows
        if rights.allows(caller, Area.SESSIONS, Action.READ, Owner(row.agent_id, row.user_id))
    )
