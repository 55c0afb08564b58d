"""The state of a session: keys, transcript and collections.

The first of a session's store types determines the state store. A writer holds the lock of the
session's row until the write is done, even if the state store is in Redis. Therefore nothing is
written to a session that is being deleted. Each write renews the session's expiry.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

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
from shared.infra.transaction import Transaction
from shared.platform.auth import rights
from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent
from shared.platform.resources import Resources

WORKING_MEMORY_KEY = "working_memory"


@asynccontextmanager
async def open_state(
    resources: Resources, caller: Caller, session_id: str, *, write: bool = False
) -> AsyncIterator[StateStore]:
    """Open the state store of a session for one transaction; raise errors.NotFound for an unknown session."""
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        session = await _get_session(resources, tx, caller, session_id, write=write)
        yield state_store_of(resources, tx, session)


async def _get_session(
    resources: Resources, tx: Transaction, caller: Caller, session_id: str, *, write: bool
) -> Session:
    session = await get_session(tx, resources.settings, caller, session_id, lock=write)
    if write:
        await queries.renew_expiry(tx, session)
    return session


def state_store_of(resources: Resources, tx: Transaction, session: Session) -> StateStore:
    """Return the state store of a session that was read in this transaction."""
    owner = Owner(session.tenant, OwnerKind.SESSION, session.id)
    if session.store_types[0] == "tmp":
        return open_redis_store(resources, owner, session.ttl_seconds)
    return PostgresStateStore(tx, owner, Caps.from_settings(resources.settings, owner.kind))


async def append_entry(
    resources: Resources, caller: Caller, session_id: str, draft: TranscriptDraft, key: IdempotencyKey | None
) -> dict[str, Any]:
    """Add an entry to a session's transcript, once per idempotency key; return {role, timestamp}.

    The response omits the content, because responses are stored in Postgres for repeated requests
    and the content of a `tmp` store must not reach Postgres. Raises errors.Forbidden for an entry of the
    system by a key that may not speak for it.
    """
    rights.require_voice(caller, draft.role)
    async with resources.postgres.for_tenant(caller.tenant) as tx, idempotent(tx, key) as request:
        if request.stored is not None:
            return dict(request.stored)
        session = await _get_session(resources, tx, caller, session_id, write=True)
        entry = await state_store_of(resources, tx, session).append(draft)
        response = {name: entry.to_json()[name] for name in ("role", "timestamp")}
        await request.store(response, record_ids=[session_id], user_id=session.user_id)
    return response


async def read_working_memory_key(resources: Resources, caller: Caller, session_id: str) -> str:
    """Return the text under the key `working_memory`, or '' without the key. Other values become JSON."""
    async with open_state(resources, caller, session_id) as store:
        entry = await store.get_key(WORKING_MEMORY_KEY)
    if entry is None:
        return ""
    return entry.value.value if isinstance(entry.value, Str) else json_codec.dumps(entry.value)
