"""Tell how many proposals wait, as far as a caller may know."""

from typing import Any

from shared.foundation.scope import Caller
from shared.memory.proposals import queries
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area, Owner
from shared.platform.resources import Resources


async def summarise(resources: Resources, caller: Caller) -> dict[str, Any]:
    """Return {held, mining_paused}: how many wait, and the scopes that have no room: their mining pauses.

    A scope is {agent_id, user_id, held}. Only those are counted and named that the key may read.
    """
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        scopes = await queries.count_by_scope(tx)
    readable = [
        (agent_id, user_id, held)
        for agent_id, user_id, held in scopes
        if rights.allows(caller, Area.MEMORIES, Action.READ, Owner(agent_id, user_id))
    ]
    most = resources.settings.proposal_max_per_scope
    full = [
        {"agent_id": agent_id, "user_id": user_id, "held": held}
        for agent_id, user_id, held in readable
        if held >= most
    ]
    return {"held": sum(held for _, _, held in readable), "mining_paused": full}
