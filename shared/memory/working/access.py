"""Which namespaces of working memory an API key may read and write.

A namespace belongs to the scope of the session that opened it. What nobody has opened is common: bound keys
read it and don't write it, unless they are bound to that very namespace.

A write is checked in the transaction during which Redis is written, and locks the namespace's row. So a
deletion waits for it and then removes the entry, or the write finds that the namespace was deleted.

A read locks nothing, and a namespace that is nobody's has no row. While Redis is read, somebody may open it
and write to it; or what was read is deleted, and another opens it. So a namespace is read that the key may
read before and after.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from shared.conversation.sessions import namespace_queries
from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.infra import redis as redis_client
from shared.infra.postgres import Postgres
from shared.infra.transaction import Transaction
from shared.memory.working import keys, queries
from shared.memory.working.working_entry import WorkingEntry, WorkingEntryInfo
from shared.memory.working.working_memory import WorkingMemory
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area, Owner
from shared.platform.resources import Resources

RETRY_AFTER_SECONDS = 60.0
"""When what is left in a namespace has usually been deleted."""
_Entry = TypeVar("_Entry", WorkingEntry, WorkingEntryInfo)
Check = Callable[[Transaction], Awaitable[None]]
"""Raises in a transaction if a write is not allowed; else nobody can delete the namespace until it ends."""


def bound_namespace(caller: Caller, requested: str | None) -> str | None:
    """Return the namespace that a call is bound to: the key's own, or else the requested one.

    Raises errors.Forbidden if the request names another namespace than the key's own.
    """
    if (
        caller.namespace is None
        or requested is None
        or keys.normalize_key(requested) == keys.normalize_key(caller.namespace)
    ):
        return caller.namespace or requested
    raise errors.Forbidden(f"this key is bound to the namespace '{caller.namespace}'")


async def require_readable(postgres: Postgres, caller: Caller, path: str) -> None:
    """Raise errors.NotFound for a path in a namespace that the key may not read.

    What is left of a deleted session, or of an erased user or agent, is read by nobody.
    """
    namespace = keys.namespace_of(keys.parse_view(path).base)
    missing = f"working memory holds no live entry '{path}'"
    async with postgres.for_tenant(caller.tenant) as tx:
        owner = await namespace_queries.owner_of(tx, namespace)
    if owner.is_deleted:
        raise errors.NotFound(missing)
    rights.require(caller, _area_of(owner), Action.READ, owner, missing)


def check_writable(caller: Caller, path: str) -> Check:
    """Return the check of a write to an entry, or to all at and below a prefix.

    For a key that reads only its own, a namespace that nobody has opened answers as another's does: it would
    otherwise learn which sessions there are.
    """
    namespace = keys.namespace_of(path)
    missing = f"working memory has no '{path}' that this key may write"

    async def check(tx: Transaction) -> None:
        owner = await namespace_queries.owner_of(tx, namespace, for_share=True)
        if owner.is_deleted and rights.is_unbound(caller):
            raise errors.Busy(f"what is left in '{namespace}' is about to be deleted", RETRY_AFTER_SECONDS)
        if owner.agent_id is None and not rights.allows(caller, _area_of(owner), Action.WRITE, owner):
            owner = replace(owner, is_deleted=True)
        rights.require(caller, _area_of(owner), Action.WRITE, owner, missing)

    return check


def check_clearable(caller: Caller, prefix: str) -> Check:
    """Return the check of a clearing. Raises errors.Forbidden if a bound key clears several namespaces.

    A prefix that spans namespaces may include namespaces of other agents and users.
    """
    if keys.spans_namespaces(prefix) and not rights.is_unbound(caller):
        bound = ", ".join(f"{field} '{value}'" for field, value in caller.bindings.items())
        raise errors.Forbidden(f"this key is bound to {bound}: clear one namespace at a time")
    return check_writable(caller, prefix)


async def read_visible(
    resources: Resources, caller: Caller, prefix: str, read: Callable[[], Awaitable[Sequence[_Entry]]]
) -> list[_Entry]:
    """Return those of the entries at and below a prefix, as `read` returns them, that the key may see."""
    working_memory = WorkingMemory.from_resources(resources, caller.tenant)
    with redis_client.failures_as_unavailable():
        names = await queries.list_namespaces(working_memory, prefix)
    names_before = await visible_namespaces(resources.postgres, caller, names)
    with redis_client.failures_as_unavailable():
        entries = [entry for entry in await read() if keys.namespace_of(entry.key) in names_before]
    names_after = await visible_namespaces(resources.postgres, caller, [entry.key for entry in entries])
    return [entry for entry in entries if keys.namespace_of(entry.key) in names_after]


async def visible_namespaces(postgres: Postgres, caller: Caller, paths: Iterable[str]) -> set[str]:
    """Return the namespaces of these entries that the key may read."""
    namespaces = sorted({keys.namespace_of(path) for path in paths})
    if not namespaces:
        return set()
    async with postgres.for_tenant(caller.tenant) as tx:
        owners = await namespace_queries.owners_of(tx, namespaces)
    return {name for name, owner in owners.items() if _is_visible(caller, owner)}


def _is_visible(caller: Caller, owner: Owner) -> bool:
    return not owner.is_deleted and rights.allows(caller, _area_of(owner), Action.READ, owner)


def _area_of(owner: Owner) -> Area:
    """Return the area of a namespace: a session's without a user is not common to users, a patrol's is."""
    is_of_session = owner.agent_id is not None and (owner.namespace or "").startswith("session/")
    return Area.SESSION_WORKING_MEMORY if is_of_session else Area.WORKING_MEMORY
