"""Keys of an agent: the durable state store that sessions use too, with its own maximum of keys."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shared.conversation.state.basic_session import PostgresStateStore
from shared.conversation.state.protocol import StateStore
from shared.conversation.state.types import Caps, Owner, OwnerKind
from shared.foundation.scope import Caller
from shared.platform.agents import queries as agent_queries
from shared.platform.agents.profile import agent_scope
from shared.platform.auth.rights import Action
from shared.platform.resources import Resources


@asynccontextmanager
async def open_agent_keys(
    resources: Resources, caller: Caller, agent_id: str, *, write: bool = False
) -> AsyncIterator[StateStore]:
    """Open an agent's state store for one transaction, which commits when the block ends without an error.

    With `write` the agent's profile is created if necessary and locked.
    """
    scope = agent_scope(caller, agent_id, Action.WRITE if write else Action.READ)
    owner = Owner(scope.tenant, OwnerKind.AGENT, scope.agent_id)
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        if write:
            await agent_queries.lock(tx, scope.agent_id)
        yield PostgresStateStore(tx, owner, Caps.from_settings(resources.settings, OwnerKind.AGENT))
