"""Open sessions and look them up."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import uuid_utils
from sqlalchemy import func

from shared.conversation.sessions import namespace_queries, queries
from shared.conversation.sessions.session import Session, SessionKind, namespace_of, validate_store_types
from shared.foundation import errors, validation
from shared.foundation.config import Settings
from shared.foundation.scope import Caller, Scope
from shared.infra import prepared
from shared.infra.postgres import seconds
from shared.infra.transaction import Transaction
from shared.jobs import removals
from shared.platform.agents import queries as agent_queries
from shared.platform.auth import rights
from shared.platform.auth.rights import Owner
from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent
from shared.platform.resources import Resources

# The paths of a session's parts follow its id in a URL, and an id may contain slashes. An id with one
# of these segments would be read as a part of another session. Only the first segment may be one.
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
        "mine",
        "pop",
        "export",
        "report",
    ]
)
# When a client may retry to open an expired session: by then the sweep has usually deleted it.
_RETRY_AFTER_SECONDS = 60.0
HoldsEntries = Callable[[Resources, str, str], Awaitable[bool]]
"""Tells, of a tenant's namespace of working memory, whether it holds live entries."""
_COMPARED_FIELDS = ("kind", "name", "agent_id", "user_id", "store_types", "ttl_seconds", "metadata")
# A caller who names none of these accepts what the session has: the store types that were the default when it
# was first opened, and what has been changed since.
_OPTIONAL_FIELDS = frozenset({"name", "store_types", "ttl_seconds", "metadata"})


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
    metadata: Mapping[str, str] | None = None,
    key: IdempotencyKey | None = None,
    holds_entries: HoldsEntries,
) -> dict[str, Any]:
    """Open a session and return it as JSON.

    Without `store_types`, the agent's profile determines them. Opening an existing id again with the
    same properties returns the existing session. Raises errors.Conflict if its properties differ or if the
    id, in any spelling, or the name is another's; and errors.Busy if it has expired and the sweep has not
    deleted it yet. `holds_entries` tells whether a namespace of working memory holds live entries.
    """
    valid_id = str(uuid_utils.uuid7()) if session_id is None else validate_id(session_id)
    if name is not None:
        validation.check_identifier(name, "name")
    values = new_columns(scope, valid_id, kind, name) | {
        "store_types": None if store_types is None else validate_store_types(store_types),
        "ttl_seconds": ttl_seconds,
        "metadata": validation.check_metadata(metadata or {}),
    }
    async with resources.postgres.for_tenant(scope.tenant) as tx, idempotent(tx, key) as request:
        if request.stored is not None:
            return dict(request.stored)
        # Nobody can have written under an id that was drawn just now, so Redis need not be asked.
        is_drawn = session_id is None and name is None
        holds = None if is_drawn else holds_entries
        session = await place_session(tx, resources, caller, values, holds)
        response = session.model_dump(mode="json")
        await request.store(response, record_ids=[session.id], user_id=scope.user_id)
    return response


def new_columns(
    scope: Scope, session_id: str, kind: SessionKind = SessionKind.SESSION, name: str | None = None
) -> dict[str, Any]:
    """Return the columns of a session for `place_session`, with nothing that an opening may leave open."""
    return prepared.scope_values(scope) | {
        "last_agent": scope.agent_id,
        "id": session_id,
        "kind": kind,
        "name": name,
        "namespace": namespace_of(kind, session_id, name),
        "store_types": None,
        "ttl_seconds": None,
        "metadata": {},
    }


def validate_id(session_id: str) -> str:
    """Return the id that a caller chose for a session. Raises errors.Invalid if it breaks a rule."""
    validation.check_identifier(session_id, "id")
    if not RESERVED_SEGMENTS.isdisjoint(session_id.split("/")[1:]):
        reserved = ", ".join(sorted(RESERVED_SEGMENTS))
        rule = f"must not have a segment after its first that names a part: {reserved}"
        raise errors.Invalid("id", rule)
    return session_id


async def place_session(
    tx: Transaction,
    resources: Resources,
    caller: Caller,
    values: dict[str, Any],
    holds_entries: HoldsEntries | None,
) -> Session:
    """Insert a session of these columns with its namespace, or return the one that exists with them.

    Without `expires_at`, it follows from `ttl_seconds`. Raises errors.Conflict and errors.Busy as
    `open_session` does.
    """
    session = await _insert_or_get(tx, caller, values, resources.settings)
    await _own_namespace(tx, resources, caller, session, holds_entries)
    return session


async def _insert_or_get(
    tx: Transaction, caller: Caller, values: dict[str, Any], settings: Settings
) -> Session:
    row = values | {"store_types": values["store_types"] or await _default_store_types(tx, values)}
    if values["ttl_seconds"] is not None and "expires_at" not in values:
        row["expires_at"] = func.now() + seconds(values["ttl_seconds"])
    is_new = await queries.insert_session(tx, row)
    if is_new and await removals.has_pending_keys(tx, [row["id"], row["namespace"]]):
        # Otherwise what is written to the new session could be removed with the rest of the old one.
        raise errors.Busy(f"session '{row['id']}' is being deleted", _RETRY_AFTER_SECONDS)
    session = await queries.get_in_any_spelling(tx, caller, values["id"], settings.window_ttl)
    if is_new and session is not None:
        return session
    if session is None or session.scope != Scope(values["tenant"], values["agent_id"], values["user_id"]):
        raise _taken("id", values["id"])
    if session.is_expired:
        raise errors.Busy(f"session '{session.id}' is over and about to be deleted", _RETRY_AFTER_SECONDS)
    fields = [field for field in _COMPARED_FIELDS if field not in _OPTIONAL_FIELDS or values[field]]
    if any(getattr(session, field) != values[field] for field in fields):
        raise errors.Conflict(f"session '{session.id}' exists with other properties")
    return session


def _taken(field: str, value: str) -> errors.Conflict:
    """Return the error for a name that another has: it says nothing about whom."""
    return errors.Conflict(f"the {field} '{value}' is taken")


async def _own_namespace(
    tx: Transaction,
    resources: Resources,
    caller: Caller,
    session: Session,
    holds_entries: HoldsEntries | None,
) -> None:
    """Give the session's working-memory namespace to its scope, unless another's entries are in it.

    An unbound key may also give away what nobody has opened. A bound key may not, or it could take what
    it was only allowed to read. Raises errors.Conflict if the namespace is another's.
    """
    scope, namespace = session.scope, session.namespace
    session_id = session.id if session.kind is SessionKind.SESSION else None

    async def is_empty() -> bool:
        return holds_entries is None or not await holds_entries(resources, scope.tenant, namespace)

    owner = await namespace_queries.lock_owner(tx, namespace)
    if owner is None and (rights.is_unbound(caller) or await is_empty()):
        if await namespace_queries.add_owner(tx, scope, namespace, session_id):
            return
        # Another request has opened it just now.
        owner = await namespace_queries.lock_owner(tx, namespace)
    if owner is not None and (owner.agent_id, owner.user_id) == (scope.agent_id, scope.user_id):
        return
    if owner is None or not await is_empty():
        raise _namespace_taken(session, owner)
    await namespace_queries.set_owner(tx, scope, namespace, session_id)


def _namespace_taken(session: Session, owner: Owner | None) -> errors.Conflict:
    if owner is not None and owner.is_deleted:
        what = f"the working memory of '{session.namespace}' is about to be deleted"
        return errors.Busy(what, _RETRY_AFTER_SECONDS)
    if session.kind is SessionKind.SESSION or session.name is None:
        return _taken("id", session.id)
    return _taken("name", session.name)


async def _default_store_types(tx: Transaction, values: dict[str, Any]) -> list[str]:
    defaults = await agent_queries.default_store_types(tx, values["agent_id"])
    return defaults or ["basic_session"]


async def get_session(
    tx: Transaction, settings: Settings, caller: Caller, session_id: str, *, lock: bool = False
) -> Session:
    """Return a session; raise errors.NotFound if there is none that the caller may see.

    `lock` locks the session's row until the transaction ends.
    """
    session = await queries.get(tx, caller, session_id, settings.window_ttl, lock=lock)
    if session is None:
        raise errors.NotFound(f"session not found: {session_id}")
    return session
