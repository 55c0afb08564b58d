"""Scratch stores: `tmp` state stores of an agent, or of one of its users, that belong to no session.

The name of a scratch store is unique in its tenant, without regard to case: the first scope that writes to
it has the name (`scratch_names.py`). For every other scope the store is empty and can't be written.

Redis keys can't be searched, so a registry in Redis lists the scratch stores of each user and of each
agent. A store is registered before the first write to it. Therefore erasing the user or the agent finds
every store.

While a store is used, its agent and its user are locked against their erasure. So an erasure finds what was
written before, and what is left of an erased one is read by nobody.
"""

import hashlib
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import orjson

from shared.conversation.state import scratch_names
from shared.conversation.state.tmp import RedisStateStore, open_redis_store
from shared.conversation.state.types import Owner, OwnerKind, to_json_time
from shared.foundation import errors, validation
from shared.foundation.content import Subject, declare_store
from shared.foundation.names import fold
from shared.foundation.scope import Scope
from shared.infra import redis as redis_client
from shared.infra.transaction import Transaction
from shared.jobs import removals
from shared.platform.resources import Resources

FAMILY = declare_store(
    "redis",
    "scratch",
    reason="the registry has digests only, and expires soon after its stores",
)
# The registry must outlive the stores it lists, even if servers differ in time or the TTL setting changed.
_REGISTRY_GRACE_SECONDS = 24 * 3600


async def open_scratch(
    resources: Resources, scope: Scope, name: str, *, write: bool = False
) -> RedisStateStore:
    """Open a scratch store by its name; a store that was never written to is empty.

    Raises errors.Invalid for a name that is no identifier of one segment. With `write` the store is
    registered when it is first used, so that a refused value leaves nothing; that raises errors.Conflict for
    a name that another scope has.
    """
    validation.check_identifier(name, "name")
    if "/" in name:
        raise errors.Invalid("name", "must not contain '/'")
    store = _open_store(resources, scope.tenant, _digest(scope.agent_id, scope.user_id, fold(name)))
    registries = {agent_registry(scope.agent_id): (Subject.AGENT, scope.agent_id)}
    if scope.user_id is not None:
        registries[user_registry(scope.user_id)] = (Subject.USER, scope.user_id)

    @asynccontextmanager
    async def use() -> AsyncIterator[None]:
        async with resources.postgres.for_tenant(scope.tenant) as tx:
            await _require_not_erased(tx, registries)
            if write:
                await scratch_names.take(resources, scope.tenant, name, store.owner.id, store.ttl)
                for registry in registries:
                    await _register(resources, scope.tenant, registry, store)
            yield

    return replace(store, around_use=use)


async def _require_not_erased(tx: Transaction, registries: Mapping[str, tuple[Subject, str]]) -> None:
    """Lock the owners of a store against erasure; raise errors.Busy if something of them is to be removed."""
    for subject, subject_id in registries.values():
        await removals.lock_subject(tx, subject, subject_id, shared=True)
    if await removals.has_pending_keys(tx, list(registries)):
        raise errors.Busy("what is left in scratch stores of this owner is about to be deleted", 60.0)


async def drop(resources: Resources, store: RedisStateStore, name: str) -> bool:
    """Delete everything in a scratch store and free its name; return whether there was anything."""
    is_dropped = await store.drop()
    await scratch_names.free(resources, store.owner.tenant, name, store.owner.id)
    return is_dropped


def user_registry(user_id: str) -> str:
    """Return the name of the registry of a user's scratch stores, of all agents."""
    return _digest(user_id)


def agent_registry(agent_id: str) -> str:
    """Return the name of the registry of an agent's scratch stores, of all users and of none."""
    return _digest("agent", agent_id)


def _open_store(resources: Resources, tenant: str, owner_id: str) -> RedisStateStore:
    return open_redis_store(resources, Owner(tenant, OwnerKind.SCRATCH, owner_id))


def _digest(*names: str | None) -> str:
    """Return a fixed-length key for names of any characters."""
    return hashlib.sha256(orjson.dumps(names)).hexdigest()


async def _register(resources: Resources, tenant: str, registry: str, store: RedisStateStore) -> None:
    key, now = _registry_key(resources, tenant, registry), time.time()
    registered_seconds = store.ttl + _REGISTRY_GRACE_SECONDS
    with redis_client.failures_as_unavailable():
        async with resources.redis.pipeline(transaction=True) as pipe:
            pipe.zremrangebyscore(key, "-inf", now)
            pipe.zadd(key, {store.owner.id: now + registered_seconds})
            pipe.expire(key, int(registered_seconds))
            await pipe.execute()


def _registry_key(resources: Resources, tenant: str, registry: str) -> str:
    return f"{resources.settings.prefix}:{FAMILY}:{{{tenant}}}:{registry}"


async def describe(store: RedisStateStore, name: str) -> dict[str, Any]:
    """Return the name, keys, collections and expiry of a scratch store as JSON, without the values."""
    keys = await store.list_keys(store.caps.keys)
    expires_at = await store.expires_at()
    return {
        "name": name,
        "keys": [entry.key for entry in keys],
        "collections": [info.to_json() for info in await store.list_collections()],
        "expires_at": None if expires_at is None else to_json_time(expires_at),
    }


async def delete_registered(resources: Resources, tenant: str, registry: str) -> int:
    """Delete every scratch store that a registry lists; return the number of stores that had content.

    `registry` comes from `user_registry` or `agent_registry`. The registry, which contains only digests,
    expires by itself. Deleting it here would be wrong: a concurrent writer may have registered a store
    and not written to it yet, and the next erasure must find that store.
    """
    key = _registry_key(resources, tenant, registry)
    with redis_client.failures_as_unavailable():
        owner_ids = [str(member) for member in await resources.redis.zrange(key, 0, -1)]
        had_content = [await _open_store(resources, tenant, owner_id).drop() for owner_id in owner_ids]
    return sum(had_content)
