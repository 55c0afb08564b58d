"""Who an agent is: a hash of its public key and its identity document, and of nothing else.

So it is the same wherever and whenever it is computed, in whatever tenant and under whatever id the
agent goes. The length of the key stands before it: without that, a byte that moves from the end of
the key to the beginning of the document would make another pair with the same hash. Only a root has
an identity; what an agent starts in its name, its sessions and subagents, has none of its own.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from shared.foundation import errors
from shared.foundation.scope import Caller, Scope
from shared.platform.agents import queries
from shared.platform.agents.agent import Agent, IdentityProof
from shared.platform.resources import Resources

_PURPOSE = b"loci agent identity 1\n"


def identity_of(public_key: str, document: str) -> str:
    """Return the identity, 64 hex digits: SHA-256 of purpose, length of the key, key, document.

    Texts as UTF-8; the length in bytes, as 8 bytes, the highest first.
    """
    key = public_key.encode()
    joined = _PURPOSE + len(key).to_bytes(8, "big") + key + document.encode()
    return hashlib.sha256(joined).hexdigest()


async def upsert(
    resources: Resources,
    caller: Caller,
    agent_id: str,
    proof: IdentityProof | None,
    changes: Mapping[str, list[str] | None],
) -> Agent:
    """Make a root if there is none, give it the identity that the proof makes, and change what is named.

    Raises errors.Conflict when it has another identity.
    """
    whose = agent_scope(caller, agent_id)
    async with resources.postgres.for_tenant(whose.tenant) as connection:
        root = await queries.lock(connection, whose.tenant, whose.agent_id)
        changed = {**changes, **_identified(root, proof)}
        return await queries.change(connection, root, changed) if changed else root


def agent_scope(caller: Caller, agent_id: str) -> Scope:
    """Return the scope of an agent itself, if the key may act in it.

    Raises errors.Forbidden for a key that is bound to another agent, or to a user.
    """
    scope = caller.scope(agent_id, None)
    if scope.user_id is not None:
        raise errors.Forbidden(f"this key is bound to user_id '{scope.user_id}'")
    return scope


def _identified(root: Agent, proof: IdentityProof | None) -> dict[str, Any]:
    if proof is None or (root.public_key, root.document) == (proof.public_key, proof.document):
        return {}
    if root.identity is not None:
        raise errors.Conflict(f"agent '{root.id}' has the identity of another public_key and document")
    identity = identity_of(proof.public_key, proof.document)
    return {"public_key": proof.public_key, "document": proof.document, "identity": identity}


async def get(resources: Resources, caller: Caller, agent_id: str) -> Agent:
    """Return an agent's root; raise errors.NotFound when nothing was ever written to it."""
    whose = agent_scope(caller, agent_id)
    async with resources.postgres.for_tenant(whose.tenant) as connection:
        root = await queries.get(connection, whose.tenant, whose.agent_id)
    if root is None:
        raise errors.NotFound(f"agent not found: {agent_id}")
    return root
