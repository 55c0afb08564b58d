"""Open, find and close sessions."""

from typing import Any

import uuid_utils
from sqlalchemy import func
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.sessions import queries
from shared.conversation.sessions.session import Session, SessionKind, namespace_of, validate_store_types
from shared.foundation import errors, validation
from shared.foundation.scope import Caller, Scope
from shared.platform.agents import queries as agent_queries
from shared.platform.idempotency.queries import IdempotencyKey, idempotent
from shared.platform.resources import Resources

# What a session holds is named behind its id, and what that holds behind it again: an id with such
# a segment would be read as that. Only its first may be one.
RESERVED_SEGMENTS = frozenset(
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
        "working-memory",
    ]
)
_SWEPT_WITHIN = 60.0  # seconds, more or less: a hint to whoever wants the id again
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
    key: IdempotencyKey | None = None,
) -> dict[str, Any]:
    """Open a session and return it as JSON; its agent's root says which stores it has if none are named.

    Opening the same id again with the same properties answers the session that is there; with
    others it is errors.Conflict, and errors.Busy while one whose time is over waits for the sweep.
    """
    opened_id = _checked_id(session_id)
    if name is not None:
        validation.check_identifier(name, "name")
    values = {
        "tenant": scope.tenant,
        "id": opened_id,
        "kind": kind,
        "name": name,
        "agent_id": scope.agent_id,
        "user_id": scope.user_id,
        "namespace": namespace_of(kind, opened_id, name),
        "store_types": None if store_types is None else validate_store_types(store_types),
        "ttl_seconds": ttl_seconds,
        "last_agent": scope.agent_id,
    }
    async with (
        resources.postgres.for_tenant(scope.tenant) as connection,
        idempotent(connection, scope.tenant, key) as request,
    ):
        if request.stored is not None:
            return dict(request.stored)
        opened = await _open(connection, caller, values, resources.settings.window_ttl)
        answer = opened.model_dump(mode="json")
        await request.store(answer, user_id=scope.user_id)
    return answer


def _checked_id(session_id: str | None) -> str:
    if session_id is None:
        return str(uuid_utils.uuid7())
    validation.check_identifier(session_id, "id")
    if not RESERVED_SEGMENTS.isdisjoint(session_id.split("/")[1:]):
        reserved = ", ".join(sorted(RESERVED_SEGMENTS))
        rule = f"must not have a segment after its first that names a part: {reserved}"
        raise errors.Invalid("id", rule)
    return session_id


async def _open(
    connection: AsyncConnection, caller: Caller, values: dict[str, Any], idle_after: float
) -> Session:
    row = values | {"store_types": values["store_types"] or await _default_stores(connection, values)}
    if values["ttl_seconds"] is not None:
        row["expires_at"] = func.now() + func.make_interval(0, 0, 0, 0, 0, 0, values["ttl_seconds"])
    await queries.insert_rows(connection, row)
    session = await queries.get(connection, caller, values["id"], idle_after)
    if session is None and await queries.is_expired(connection, values["tenant"], values["id"]):
        raise errors.Busy(f"session '{values['id']}' is over and about to be deleted", _SWEPT_WITHIN)
    # What the default was when it was first opened is no business of who opens it again.
    asked = [field for field in _FIXED if field != "store_types" or values[field]]
    if session is None or any(getattr(session, field) != values[field] for field in asked):
        raise errors.Conflict(f"session '{values['id']}' exists with other properties")
    return session


async def _default_stores(connection: AsyncConnection, values: dict[str, Any]) -> list[str]:
    chosen = await agent_queries.default_store_types(connection, values["tenant"], values["agent_id"])
    return chosen or ["basic_session"]


async def get_session(
    connection: AsyncConnection, caller: Caller, session_id: str, idle_after: float, *, lock: bool = False
) -> Session:
    """Return a session; raise errors.NotFound when there is none that the caller may see."""
    found = await queries.get(connection, caller, session_id, idle_after, lock=lock)
    if found is None:
        raise errors.NotFound(f"session not found: {session_id}")
    return found
