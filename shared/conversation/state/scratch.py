"""Scratch stores: `tmp` stores of an agent, or of one of its users, that belong to no session.

They are found by name within their scope. Which of them a user has is noted in Redis before
anything is written, so that erasing the user finds them all: Redis keys can't be searched for.
"""

import hashlib
import time
from typing import Any

import orjson

from shared.conversation.state.tmp import RedisStateStore, open_tmp
from shared.conversation.state.types import Owner, OwnerKind, shown_time
from shared.foundation import errors, validation
from shared.foundation.scope import Scope
from shared.infra import redis as redis_client
from shared.platform.resources import Resources

# A note outlives the store that it names, whatever the clocks and the settings do.
_GRACE = 24 * 3600


async def open_scratch(
    resources: Resources, scope: Scope, name: str, *, write: bool = False
) -> RedisStateStore:
    """Open a scratch store; one that was never written to is empty."""
    validation.check_identifier(name, "name")
    if "/" in name:
        raise errors.Invalid("name", "must not contain '/'")
    store = _store(resources, scope.tenant, _digest(scope.agent_id, scope.user_id, name))
    if write and scope.user_id is not None:
        await _note(resources, scope.tenant, scope.user_id, store)
    return store


def _store(resources: Resources, tenant: str, owner_id: str) -> RedisStateStore:
    return open_tmp(resources, Owner(tenant, OwnerKind.SCRATCH, owner_id))


def _digest(*names: str | None) -> str:
    """Return one word for names that may hold any character."""
    return hashlib.sha256(orjson.dumps(names)).hexdigest()


async def _note(resources: Resources, tenant: str, user_id: str, store: RedisStateStore) -> None:
    key, now, life = _notes(resources, tenant, user_id), time.time(), store.ttl + _GRACE
    with redis_client.failures_as_unavailable():
        async with resources.redis.pipeline(transaction=True) as pipe:
            pipe.zremrangebyscore(key, "-inf", now)
            pipe.zadd(key, {store.owner.id: now + life})
            pipe.expire(key, int(life))
            await pipe.execute()


def _notes(resources: Resources, tenant: str, user_id: str) -> str:
    return f"{resources.settings.prefix}:scratch:{{{tenant}}}:{_digest(user_id)}"


async def describe(store: RedisStateStore, name: str) -> dict[str, Any]:
    """Return what a scratch store holds, without the values."""
    keys = await store.list_keys(store.caps.keys)
    expires_at = await store.expires_at()
    return {
        "name": name,
        "keys": [entry.key for entry in keys],
        "collections": [listing.to_json() for listing in await store.list_collections()],
        "expires_at": None if expires_at is None else shown_time(expires_at),
    }


async def erase(resources: Resources, tenant: str, user_id: str) -> int:
    """Drop every scratch store of a user, of whatever agent; return how many there were.

    The notes, which are digests, stay until their time is over: whoever has noted a store and not
    yet written to it leaves something behind that a next erasure must find.
    """
    notes = _notes(resources, tenant, user_id)
    with redis_client.failures_as_unavailable():
        noted = [str(one) for one in await resources.redis.zrange(notes, 0, -1)]
        dropped = [await _store(resources, tenant, owner_id).drop() for owner_id in noted]
    return sum(dropped)
