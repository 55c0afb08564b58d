"""Which namespaces of working memory an API key may read and write.

A key bound to an agent or a user sees the namespaces of that agent's or user's sessions, and of its
agent's patrols and subagents. Patrols and subagents without a session are common to all. A key bound to
a namespace writes only there.
"""

from collections.abc import Iterable

from shared.conversation.sessions import queries as session_queries
from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.infra.postgres import Postgres
from shared.memory.working import keys

_COMMON_SEGMENTS = {"patrol", "subagent"}


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


async def require_visible(postgres: Postgres, caller: Caller, path: str) -> None:
    """Raise errors.NotFound for a path in a namespace that the key may not see."""
    if not await visible_namespaces(postgres, caller, [path]):
        raise errors.NotFound(f"working memory holds no live entry '{path}'")


async def require_clearable(postgres: Postgres, caller: Caller, prefix: str) -> None:
    """Raise errors.NotFound as `require_visible` does, and errors.Forbidden if a bound key clears several.

    A prefix that spans namespaces may include namespaces of other agents and users.
    """
    if keys.spans_namespaces(prefix) and (caller.agent_id is not None or caller.user_id is not None):
        bound = ", ".join(f"{field} '{value}'" for field, value in caller.bindings.items())
        raise errors.Forbidden(f"this key is bound to {bound}: clear one namespace at a time")
    await require_visible(postgres, caller, prefix)


async def visible_namespaces(postgres: Postgres, caller: Caller, paths: Iterable[str]) -> set[str]:
    """Return the namespaces of these paths that the key may see."""
    namespaces = sorted({keys.namespace_of(keys.parse_view(path).base) for path in paths})
    if not namespaces or (caller.agent_id is None and caller.user_id is None):
        return set(namespaces)
    async with postgres.for_tenant(caller.tenant) as connection:
        owners = await session_queries.owners_of(connection, caller.tenant, namespaces)
    return {name for name in namespaces if _may_see(caller, name, owners.get(name))}


def _may_see(caller: Caller, namespace: str, owners: list[tuple[str, str | None]] | None) -> bool:
    first_segment = namespace.partition("/")[0]
    if owners is None:
        return first_segment in _COMMON_SEGMENTS
    if first_segment in _COMMON_SEGMENTS:
        return any(caller.may_see(agent, user) for agent, user in owners)
    # Unlike a memory, a session without a user is not common to all users.
    key_user = caller.user_id
    return any(caller.may_see(agent, user) and key_user in (None, user) for agent, user in owners)
