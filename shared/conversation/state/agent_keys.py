"""What an agent keeps under keys: the store that sessions have, always durable, with a cap of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shared.conversation.state.basic_session import BasicSession
from shared.conversation.state.protocol import Store
from shared.conversation.state.types import Caps, Owner, OwnerKind
from shared.foundation.scope import Caller
from shared.platform.agents import queries as agent_queries
from shared.platform.agents.profile import owner
from shared.platform.resources import Resources


@asynccontextmanager
async def open_keys(
    resources: Resources, caller: Caller, agent_id: str, *, write: bool = False
) -> AsyncIterator[Store]:
    """Open an agent's store for one step, which ends well with the block; `write` makes the root."""
    whose = owner(caller, agent_id)
    holder = Owner(whose.tenant, OwnerKind.AGENT, whose.agent_id)
    async with resources.postgres.tenant(whose.tenant) as connection:
        if write:
            await agent_queries.hold(connection, whose.tenant, whose.agent_id)
        yield BasicSession(connection, holder, Caps.of(resources.settings, OwnerKind.AGENT))
