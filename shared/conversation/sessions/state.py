"""What a session holds, in the store that it was opened with.

The first of a session's store types serves its keys, transcript and collections. Whoever writes
holds the session's row until the write is done, in Redis too: a session that is being deleted is
not written to any more, and one that is written to lives on.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.sessions import queries
from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session
from shared.conversation.state.basic_session import PostgresStateStore
from shared.conversation.state.protocol import StateStore
from shared.conversation.state.tmp import open_redis_store
from shared.conversation.state.types import Caps, Owner, OwnerKind, TranscriptDraft
from shared.conversation.values import json_codec
from shared.conversation.values.value import Str
from shared.foundation.scope import Caller
from shared.platform.idempotency.queries import IdempotencyKey, idempotent
from shared.platform.resources import Resources

WORKING_MEMORY = "working_memory"


@asynccontextmanager
async def open_state(
    resources: Resources, caller: Caller, session_id: str, *, write: bool = False
) -> AsyncIterator[StateStore]:
    """Open the store of a session for one step; errors.NotFound for a session that isn't there."""
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        session = await _find(resources, connection, caller, session_id, write=write)
        yield store_of(resources, connection, session)


async def _find(
    resources: Resources, connection: AsyncConnection, caller: Caller, session_id: str, *, write: bool
) -> Session:
    idle = resources.settings.window_ttl
    session = await get_session(connection, caller, session_id, idle, lock=write)
    if write:
        await queries.renew_expiry(connection, session)
    return session


def store_of(resources: Resources, connection: AsyncConnection, session: Session) -> StateStore:
    """Return the store of a session that was found in this transaction."""
    owner = Owner(session.tenant, OwnerKind.SESSION, session.id)
    if session.store_types[0] == "tmp":
        return open_redis_store(resources, owner, session.ttl_seconds)
    return PostgresStateStore(connection, owner, Caps.from_settings(resources.settings, owner.kind))


async def append_entry(
    resources: Resources, caller: Caller, session_id: str, draft: TranscriptDraft, key: IdempotencyKey | None
) -> dict[str, Any]:
    """Add to a session's transcript, once for each request; return {role, timestamp}.

    The answer leaves out what was said, because the answers to requests are kept durably, and what
    a `tmp` session holds is not.
    """
    async with (
        resources.postgres.for_tenant(caller.tenant) as connection,
        idempotent(connection, caller.tenant, key) as request,
    ):
        if request.stored is not None:
            return dict(request.stored)
        session = await _find(resources, connection, caller, session_id, write=True)
        entry = await store_of(resources, connection, session).append(draft)
        answer = {name: entry.to_json()[name] for name in ("role", "timestamp")}
        await request.store(answer, record_ids=[session_id], user_id=session.user_id)
    return answer


async def read_working_memory_key(resources: Resources, caller: Caller, session_id: str) -> str:
    """Return the text under the key `working_memory`, '' if there is none; another value as its JSON."""
    async with open_state(resources, caller, session_id) as store:
        entry = await store.get_key(WORKING_MEMORY)
    if entry is None:
        return ""
    return entry.value.value if isinstance(entry.value, Str) else json_codec.dumps(entry.value)
