"""Read and write agent profiles, and compute an agent's identity.

The identity is a hash of the agent's public key and its identity document, and of nothing else. It is
therefore the same in every tenant and under every agent id. The length of the key is hashed before the
key: otherwise a byte that moves from the end of the key to the beginning of the document would give
another pair with the same hash. Only an agent has an identity; its sessions and subagents have none.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from shared.foundation import errors
from shared.foundation.scope import Caller, Scope
from shared.infra.transaction import Transaction
from shared.platform.agents import queries
from shared.platform.agents.agent import Agent, IdentityProof
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area
from shared.platform.resources import Resources

_PURPOSE = b"loci agent identity 1\n"


async def get(resources: Resources, caller: Caller, agent_id: str) -> Agent:
    """Return an agent's profile. Raise errors.NotFound when nothing was ever written to it."""
    scope = agent_scope(caller, agent_id, Action.READ)
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        profile = await queries.get(tx, scope.agent_id)
    if profile is None:
        raise errors.NotFound(f"agent not found: {agent_id}")
    return profile


async def upsert(
    resources: Resources,
    caller: Caller,
    agent_id: str,
    proof: IdentityProof | None,
    changes: Mapping[str, Any],
) -> Agent:
    """Create the profile if there is none, give it the identity of `proof`, and write the changed columns.

    Raise errors.Conflict when the agent has another identity already.
    """
    scope = agent_scope(caller, agent_id, Action.WRITE)
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        profile = await queries.lock(tx, scope.agent_id)
        columns = {**changes, **_identity_columns(profile, proof)}
        return await queries.update_profile(tx, profile, columns) if columns else profile


async def reason_not_to_mine(tx: Transaction, scope: Scope) -> str | None:
    """Return why no facts are mined out of the conversations of a scope, or None if they are."""
    profile = await queries.get(tx, scope.agent_id)
    if profile is not None and not profile.mine_facts:
        return f"the profile of agent '{scope.agent_id}' switches mining off"
    if scope.user_id is None and (profile is None or not profile.mine_common):
        return f"it has no user, and the profile of agent '{scope.agent_id}' does not say mine_common"
    return None


def agent_scope(caller: Caller, agent_id: str, action: Action) -> Scope:
    """Return the scope of an agent without a user, if the key may do this with what belongs to the agent.

    Raise errors.Forbidden for a key that is bound to another agent, or to a user.
    """
    return rights.scope(caller, Area.AGENTS, action, agent_id)


def identity_of(public_key: str, document: str) -> str:
    """Return the identity, 64 hex digits: SHA-256 of purpose, length of the key, key, document.

    Texts are encoded as UTF-8. The length is in bytes, written as 8 bytes in big-endian order.
    """
    key = public_key.encode()
    hash_input = _PURPOSE + len(key).to_bytes(8, "big") + key + document.encode()
    return hashlib.sha256(hash_input).hexdigest()


def _identity_columns(profile: Agent, proof: IdentityProof | None) -> dict[str, Any]:
    """Return the columns that `proof` changes. Raise errors.Conflict if the agent has another identity."""
    if proof is None or (profile.public_key, profile.document) == (proof.public_key, proof.document):
        return {}
    if profile.identity is not None:
        raise errors.Conflict(f"agent '{profile.id}' has the identity of another public_key and document")
    identity = identity_of(proof.public_key, proof.document)
    return {"public_key": proof.public_key, "document": proof.document, "identity": identity}
