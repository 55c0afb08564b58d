"""Open, find and close sessions."""

from typing import Any

import uuid_utils
from sqlalchemy import func
from sqlalchemy.ext.asyncio import AsyncConnection

from shared import errors, naming
from shared.conversation import store as conversation
from shared.conversation import window
from shared.idempotency import store as idempotency
from shared.idempotency.store import RequestKey
from shared.index import vectors
from shared.resources import Resources
from shared.scope import Caller, Scope
from shared.sessions import store
from shared.sessions.record import STORE_TYPES, Session, SessionKind, namespace_of
from shared.stages import Kind
from shared.work import store as work

# What a session holds is named behind its id; an id that ends so would be read as that.
_HELD_NAMES = frozenset(
    [
        "turns",
        "batch",
        "context",
        "kv",
        "transcript",
        "files",
        "collections",
        "spend",
        "observations",
        "scratchpad",
        "promote",
        "feedback",
    ]
)
_FIXED = ("kind", "name", "agent_id", "user_id", "store_types", "ttl_seconds")


async def open_session(  # noqa: PLR0913
    resources: Resources,
    caller: Caller,
    scope: Scope,
    *,
    session_id: str | None = None,
    kind: SessionKind = SessionKind.SESSION,
    name: str | None = None,
    store_types: list[str] | None = None,
    ttl_seconds: int | None = None,
    request: RequestKey | None = None,
) -> dict[str, Any]:
    """Open a session and return it as JSON.

    Opening the same id again with the same properties answers the session that is there; with
    others it is errors.Conflict.
    """
    opened_id = _checked_id(session_id)
    if name is not None:
        naming.check_identifier(name, "name")
    values = {
        "tenant": scope.tenant,
        "id": opened_id,
        "kind": kind,
        "name": name,
        "agent_id": scope.agent_id,
        "user_id": scope.user_id,
        "namespace": namespace_of(kind, opened_id, name),
        "store_types": _checked_stores(store_types),
        "ttl_seconds": ttl_seconds,
        "last_agent": scope.agent_id,
    }
    async with resources.postgres.tenant(scope.tenant) as connection:
        known = await idempotency.recall(connection, scope.tenant, request)
        if known is not None:
            return dict(known)
        opened = await _open(connection, caller, values, resources.settings.window_idle)
        answer = opened.model_dump(mode="json")
        await idempotency.keep(connection, scope.tenant, request, answer, user_id=scope.user_id)
    return answer


def _checked_id(session_id: str | None) -> str:
    if session_id is None:
        return str(uuid_utils.uuid7())
    naming.check_identifier(session_id, "id")
    if session_id.rpartition("/")[2] in _HELD_NAMES:
        raise errors.Invalid("id", f"must not end in a part of a session: {', '.join(sorted(_HELD_NAMES))}")
    return session_id


def _checked_stores(store_types: list[str] | None) -> list[str]:
    wanted = ["basic_session"] if store_types is None else list(dict.fromkeys(store_types)) or ["tmp"]
    for store_type in wanted:
        if store_type not in STORE_TYPES:
            rule = f"unknown store type: {store_type}; must be of {', '.join(STORE_TYPES)}"
            raise errors.Invalid("store_types", rule)
    return wanted


async def _open(
    connection: AsyncConnection, caller: Caller, values: dict[str, Any], idle_after: float
) -> Session:
    row = dict(values)
    if values["ttl_seconds"] is not None:
        row["expires_at"] = func.now() + func.make_interval(0, 0, 0, 0, 0, 0, values["ttl_seconds"])
    await store.add(connection, row)
    session = await store.get(connection, caller, values["id"], idle_after)
    if session is None or any(getattr(session, field) != values[field] for field in _FIXED):
        raise errors.Conflict(f"session '{values['id']}' exists with other properties")
    return session


async def find(
    connection: AsyncConnection, caller: Caller, session_id: str, idle_after: float, *, lock: bool = False
) -> Session:
    """Return a session; raise errors.NotFound when there is none that the caller may see."""
    found = await store.get(connection, caller, session_id, idle_after, lock=lock)
    if found is None:
        raise errors.NotFound(f"session not found: {session_id}")
    return found


async def close(resources: Resources, caller: Caller, session_id: str) -> None:
    """Delete a session with its turns; its desk goes with its own time to live."""
    async with resources.postgres.tenant(caller.tenant) as connection:
        session = await find(connection, caller, session_id, resources.settings.window_idle)
        claims = await discard(connection, caller.tenant, [session.id])
    await resources.writer.write_through([], claims)
    await window.discard(resources, caller.tenant, [session.id])


async def discard(connection: AsyncConnection, tenant: str, session_ids: list[str]) -> list[work.Claim]:
    """Delete sessions, turns and answers; return the index rows that take the turns' points away."""
    turns = await conversation.passages_of(connection, tenant, session_ids)
    await vectors.forget(connection, tenant, list(turns.values()))
    await idempotency.blank(connection, tenant, session_ids)
    await store.remove(connection, tenant, session_ids)
    gone = dict.fromkeys(turns, conversation.VERSION + 1)
    return await work.enqueue_index(connection, tenant, Kind.TURN, gone) if gone else []
