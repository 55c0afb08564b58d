"""Which desks a key may see and write.

A key bound to an agent or a user sees the desks of that agent's or user's sessions, and the
patrols and subagents of its agent; patrols and subagents that no session opened are common. A
key bound to a namespace writes only there.
"""

from collections.abc import Iterable

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.sessions import queries as session_queries
from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.infra.postgres import Postgres
from shared.memory.working import keys

_COMMON = {"patrol", "subagent"}


def bound_namespace(caller: Caller, asked: str | None) -> str | None:
    """Return the namespace that this call writes in: the key's own, or the one that is asked for."""
    if (
        caller.namespace is None
        or asked is None
        or keys.normalize_key(asked) == keys.normalize_key(caller.namespace)
    ):
        return caller.namespace or asked
    raise errors.Forbidden(f"this key is bound to the namespace '{caller.namespace}'")


async def require_visible(postgres: Postgres, caller: Caller, path: str) -> None:
    """Raise errors.NotFound for a path on somebody else's desk."""
    if not await visible(postgres, caller, [path]):
        raise errors.NotFound(f"working memory holds no live entry '{path}'")


async def require_clearable(postgres: Postgres, caller: Caller, prefix: str) -> None:
    """As `check`, and raise errors.Forbidden where a bound key would clear desks that others own, too."""
    if keys.spans_namespaces(prefix) and (caller.agent_id is not None or caller.user_id is not None):
        bound = ", ".join(f"{field} '{value}'" for field, value in caller.bindings.items())
        raise errors.Forbidden(f"this key is bound to {bound}: clear one namespace at a time")
    await require_visible(postgres, caller, prefix)


async def visible(postgres: Postgres, caller: Caller, paths: Iterable[str]) -> set[str]:
    """Return the namespaces of these paths that the key may see."""
    names = sorted({keys.namespace_of(keys.parse_view(path).base) for path in paths})
    if not names or (caller.agent_id is None and caller.user_id is None):
        return set(names)
    async with postgres.for_tenant(caller.tenant) as connection:
        return await _among(connection, caller, names)


async def _among(connection: AsyncConnection, caller: Caller, names: list[str]) -> set[str]:
    owners = await session_queries.owners_of(connection, caller.tenant, names)
    return {name for name in names if _may_see(caller, name, owners.get(name))}


def _may_see(caller: Caller, name: str, owners: list[tuple[str, str | None]] | None) -> bool:
    kind = name.partition("/")[0]
    if owners is None:
        return kind in _COMMON
    if kind in _COMMON:
        return any(caller.may_see(agent, user) for agent, user in owners)
    own_user = caller.user_id
    return any(caller.may_see(agent, user) and own_user in (None, user) for agent, user in owners)
