"""What an agent keeps under keys: the store that sessions have, always durable, with a cap of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shared.conversation.state.basic_session import PostgresStateStore
from shared.conversation.state.protocol import StateStore
from shared.conversation.state.types import Caps, Owner, OwnerKind
from shared.foundation.scope import Caller
from shared.platform.agents import queries as agent_queries
from shared.platform.agents.profile import agent_scope
from shared.platform.resources import Resources


@asynccontextmanager
async def open_agent_keys(
    resources: Resources, caller: Caller, agent_id: str, *, write: bool = False
) -> AsyncIterator[StateStore]:
    """Open an agent's store for one step, which ends well with the block; `write` makes the root."""
    whose = agent_scope(caller, agent_id)
    holder = Owner(whose.tenant, OwnerKind.AGENT, whose.agent_id)
    async with resources.postgres.for_tenant(whose.tenant) as connection:
        if write:
            await agent_queries.lock(connection, whose.tenant, whose.agent_id)
        yield PostgresStateStore(connection, holder, Caps.from_settings(resources.settings, OwnerKind.AGENT))
