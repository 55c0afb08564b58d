"""An agent's root: who it is, and what its sessions store in when they name nothing.

A root is there from its first write on, whatever is written. It belongs to the agent and is common
to all of its users and sessions, of whatever kind: so a key that is bound to a user has no part in
it. The identity is set once and then stands: whoever remembers it must always find the same agent.
"""

from collections.abc import Mapping
from typing import Any

from shared import errors
from shared.agents import store
from shared.agents.identity import identity_of
from shared.agents.record import Agent, Proof
from shared.resources import Resources
from shared.scope import Caller, Scope


async def put(
    resources: Resources,
    caller: Caller,
    agent_id: str,
    proof: Proof | None,
    changes: Mapping[str, list[str] | None],
) -> Agent:
    """Make a root if there is none, give it the identity that the proof makes, and change what is named.

    Raises errors.Conflict when it has another identity.
    """
    whose = owner(caller, agent_id)
    async with resources.postgres.tenant(whose.tenant) as connection:
        root = await store.hold(connection, whose.tenant, whose.agent_id)
        changed = {**changes, **_identified(root, proof)}
        return await store.change(connection, root, changed) if changed else root


def owner(caller: Caller, agent_id: str) -> Scope:
    """Return the scope of an agent itself, if the key may act in it.

    Raises errors.Forbidden for a key that is bound to another agent, or to a user.
    """
    scope = caller.scope(agent_id, None)
    if scope.user_id is not None:
        raise errors.Forbidden(f"this key is bound to user_id '{scope.user_id}'")
    return scope


def _identified(root: Agent, proof: Proof | None) -> dict[str, Any]:
    if proof is None or (root.public_key, root.document) == (proof.public_key, proof.document):
        return {}
    if root.identity is not None:
        raise errors.Conflict(f"agent '{root.id}' has the identity of another public_key and document")
    identity = identity_of(proof.public_key, proof.document)
    return {"public_key": proof.public_key, "document": proof.document, "identity": identity}


async def get(resources: Resources, caller: Caller, agent_id: str) -> Agent:
    """Return an agent's root; raise errors.NotFound when nothing was ever written to it."""
    whose = owner(caller, agent_id)
    async with resources.postgres.tenant(whose.tenant) as connection:
        root = await store.get(connection, whose.tenant, whose.agent_id)
    if root is None:
        raise errors.NotFound(f"agent not found: {agent_id}")
    return root
