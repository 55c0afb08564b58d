"""Read, write and delete working-memory entries on behalf of a caller.

Every path is a full one. An entry in a namespace that the caller's key may not see counts as missing.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

from shared.foundation.origin import Trust
from shared.foundation.scope import Caller
from shared.foundation.versions import Expected
from shared.infra import redis as redis_client
from shared.memory.working import access, queries, write
from shared.memory.working.working_entry import WorkingEntry, WorkingEntryInfo
from shared.memory.working.working_memory import WorkingMemory
from shared.platform.idempotency.idempotent import IdempotencyKey
from shared.platform.resources import Resources


async def list_entries(resources: Resources, caller: Caller, prefix: str) -> list[WorkingEntryInfo]:
    """Return the entries at and below a prefix that the key may see, sorted by key, without values."""
    working_memory = WorkingMemory.from_resources(resources, caller.tenant)
    read = partial(queries.list_entries, working_memory, prefix)
    return await access.read_visible(resources, caller, prefix, read)


async def get(resources: Resources, caller: Caller, path: str, *, full: bool = False) -> WorkingEntry:
    """Return a live entry, or a part of a large one, whose value is its outline unless `full`.

    Raises errors.NotFound if there is no such entry or part that the key may see.
    """
    await access.require_readable(resources.postgres, caller, path)
    with redis_client.failures_as_unavailable():
        entry = await queries.get(WorkingMemory.from_resources(resources, caller.tenant), path, full=full)
    await access.require_readable(resources.postgres, caller, path)
    return entry


async def put(  # noqa: PLR0913
    resources: Resources,
    caller: Caller,
    path: str,
    value: str,
    *,
    ttl_seconds: float | None = None,
    category: str | None = None,
    tags: Iterable[str] = (),
    expected: Expected | None = None,
    trust: Trust | None = None,
) -> WorkingEntry:
    """Write an entry and return it.

    Raises errors.NotFound in a namespace that the key may not see, errors.Forbidden in one that it may only
    read, errors.Invalid for bad input or more `trust` than the caller has, errors.PreconditionFailed for a
    stored version that is not expected, and errors.LimitReached if the namespace is full.
    """
    check = access.check_writable(caller, path)
    origin = caller.origin.lowered(trust)
    fields: dict[str, Any] = {"ttl_seconds": ttl_seconds, "category": category, "tags": tags}
    return await write.put(resources, caller.tenant, path, value, origin, check, expected=expected, **fields)


async def append(
    resources: Resources,
    caller: Caller,
    path: str,
    text: str,
    *,
    ttl_seconds: float | None = None,
    expected: Expected | None = None,
    key: IdempotencyKey | None = None,
    trust: Trust | None = None,
) -> WorkingEntry:
    """Append a text to a live entry, once per idempotency key, and return the entry as it is then.

    Raises what `put` does but errors.LimitReached, and errors.NotFound also if there is no live entry.
    """
    check = access.check_writable(caller, path)
    given = caller.origin.lowered(trust).trust
    fields: dict[str, Any] = {"ttl_seconds": ttl_seconds, "expected": expected, "key": key}
    return await write.append(resources, caller.tenant, path, text, given, check, **fields)


async def delete(
    resources: Resources, caller: Caller, path: str, *, expected: Expected | None = None
) -> bool:
    """Delete an entry and return whether there was a live one.

    Raises errors.NotFound in a namespace that the key may not see, errors.Forbidden in one that it may
    only read, and errors.PreconditionFailed for a stored version that is not expected.
    """
    check = access.check_writable(caller, path)
    return await write.delete(resources, caller.tenant, path, check, expected=expected)


async def clear(resources: Resources, caller: Caller, prefix: str) -> int:
    """Delete everything at and below a prefix, and return the number of deleted live entries.

    Raises errors.NotFound as `delete` does, and errors.Forbidden if a bound key clears several namespaces.
    """
    return await write.clear(resources, caller.tenant, prefix, access.check_clearable(caller, prefix))


async def holds_entries(resources: Resources, tenant: str, namespace: str) -> bool:
    """Return whether a namespace holds live entries. Raises errors.Unavailable while Redis is."""
    with redis_client.failures_as_unavailable():
        return bool(await queries.list_entries(WorkingMemory.from_resources(resources, tenant), namespace))
