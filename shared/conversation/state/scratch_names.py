"""Who has the name of a scratch store: one scope per tenant, for as long as the store may hold anything.

A name is held in Redis, beside the stores. What a store holds is kept under its scope and its name, so even
if a name changes hands too early, nobody reads what another has written.
"""

import hashlib

from shared.foundation import errors
from shared.foundation.content import declare_store
from shared.foundation.names import fold
from shared.infra import redis as redis_client
from shared.platform.resources import Resources

FAMILY = declare_store(
    "redis",
    "scratch-name",
    reason="digests of a name and of its scope, which end with the time to live of the store",
)
# A name must outlive what was written under it by more than a client waits for Redis.
_GRACE_SECONDS = 60

# KEYS: the name. ARGV: holder, time to live in ms. Returns 1 if the holder has the name now, or 0.
_TAKE = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""

# KEYS: the name. ARGV: holder. Frees the name if this holder has it.
_FREE = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end"


async def take(resources: Resources, tenant: str, name: str, holder: str, ttl_seconds: float) -> None:
    """Take a name, or keep it for longer.

    Raises errors.Conflict, without a word about the holder, if another has it.
    """
    ttl_ms = int((ttl_seconds + _GRACE_SECONDS) * 1000)
    with redis_client.failures_as_unavailable():
        is_taken = await resources.redis.eval(_TAKE, 1, _key(resources, tenant, name), holder, ttl_ms)
    if not is_taken:
        raise errors.Conflict(f"the name '{name}' is taken")


async def free(resources: Resources, tenant: str, name: str, holder: str) -> None:
    """Free a name if this holder has it."""
    with redis_client.failures_as_unavailable():
        await resources.redis.eval(_FREE, 1, _key(resources, tenant, name), holder)


def _key(resources: Resources, tenant: str, name: str) -> str:
    digest = hashlib.sha256(fold(name).encode()).hexdigest()
    return f"{resources.settings.prefix}:{FAMILY}:{{{tenant}}}:{digest}"
