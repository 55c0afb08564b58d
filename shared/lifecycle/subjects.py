"""List the users and the agents of a tenant, as far as a key may know them."""

from shared.foundation.scope import Caller
from shared.lifecycle import subject_queries
from shared.lifecycle.subject_queries import KnownSubject
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area
from shared.platform.resources import Resources


async def list_users(
    resources: Resources, caller: Caller, agent_id: str | None, prefix: str, start: str, limit: int
) -> list[KnownSubject]:
    """Return users whom something is stored of, by id, from `start` on: all, or those of an agent.

    A key that is bound to an agent sees the users of this agent, and one that is bound to a user sees this
    user. Raises errors.Forbidden for another agent than the key is bound to.
    """
    rights.scope(caller, Area.SESSIONS, Action.READ, agent_id)
    own = caller.user_id
    if own is not None:
        if not own.startswith(prefix) or own < start:
            return []
        prefix, start, limit = own, own, 1
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        users = await subject_queries.list_users(tx, agent_id or caller.agent_id, prefix, start, limit)
    return [user for user in users if own in (None, user.id)]


async def list_agents(resources: Resources, caller: Caller, start: str, limit: int) -> list[KnownSubject]:
    """Return agents whom something is stored of, by id, from `start` on.

    A key that is bound to an agent sees this agent. Raises errors.Forbidden for a key bound to a user.
    """
    rights.require_area(caller, Area.AGENTS, Action.READ)
    own = caller.agent_id
    if own is not None:
        if start not in ("", own):
            return []
        start, limit = own, 1
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        agents = await subject_queries.list_agents(tx, start, limit)
    return [agent for agent in agents if own in (None, agent.id)]
