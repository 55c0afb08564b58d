"""Which namespaces of working memory an API key may read and write.

A namespace belongs to the scope of the session that opened it. What nobody has opened is common: bound keys
read it and don't write it, unless they are bound to that very namespace.
"""

from collections.abc import Iterable

from shared.conversation.sessions import namespace_queries
from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.infra.postgres import Postgres
from shared.memory.working import keys
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area, Owner


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


async def require(postgres: Postgres, caller: Caller, action: Action, path: str) -> None:
    """Raise errors.NotFound for a path in a namespace that the key may not read.

    Raise errors.Forbidden if it may read it and not write it.
    """
    for owner in (await _owners_of(postgres, caller, [path])).values():
        missing = f"working memory holds no live entry '{path}'"
        rights.require(caller, _area_of(owner), action, owner, missing)


async def require_clearable(postgres: Postgres, caller: Caller, prefix: str) -> None:
    """Raise errors as `require` does for writing, and errors.Forbidden if a bound key clears several.

    A prefix that spans namespaces may include namespaces of other agents and users.
    """
    if keys.spans_namespaces(prefix) and not rights.is_unbound(caller):
        bound = ", ".join(f"{field} '{value}'" for field, value in caller.bindings.items())
        raise errors.Forbidden(f"this key is bound to {bound}: clear one namespace at a time")
    await require(postgres, caller, Action.WRITE, prefix)


async def visible_namespaces(postgres: Postgres, caller: Caller, paths: Iterable[str]) -> set[str]:
    """Return the namespaces of these paths that the key may read."""
    owners = await _owners_of(postgres, caller, paths)
    return {
        name for name, owner in owners.items() if rights.allows(caller, _area_of(owner), Action.READ, owner)
    }


async def _owners_of(postgres: Postgres, caller: Caller, paths: Iterable[str]) -> dict[str, Owner]:
    """Return the owner of each path's namespace. For an unbound key no owner matters, and none is read."""
    namespaces = sorted({keys.namespace_of(keys.parse_view(path).base) for path in paths})
    if not namespaces or rights.is_unbound(caller):
        return {name: Owner(namespace=name) for name in namespaces}
    async with postgres.for_tenant(caller.tenant) as connection:
        return await namespace_queries.owners_of(connection, caller.tenant, namespaces)


def _area_of(owner: Owner) -> Area:
    """Return the area of a namespace: a session's without a user is not common to users, a patrol's is."""
    is_of_session = owner.agent_id is not None and (owner.namespace or "").startswith("session/")
    return Area.SESSION_WORKING_MEMORY if is_of_session else Area.WORKING_MEMORY
