"""Every Redis operation on working memory.

Each function takes the `WorkingMemory`, which carries the tenant. Redis keys are built in `_keys` and
`_registry` at the end of this file, so no caller can name another tenant's. A `:` separates tenant and
namespace, because a tenant's name cannot contain one. With `/`, tenant `a/b` with namespace `c` would
share its keys with tenant `a` and namespace `b/c`.

A namespace is registered in the tenant's list before the entry is written, in the same pipeline.
The list serves to read a prefix that spans namespaces. It may name namespaces that are empty by now,
so it is never counted.

Errors of Redis pass through as redis exceptions; the caller decides what an unavailable Redis means.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from redis.asyncio import Redis

from shared.foundation import errors, validation
from shared.foundation.config import Settings
from shared.foundation.content import Subject, declare_store
from shared.memory.working import codec, keys, large_values, scripts
from shared.memory.working.working_entry import WorkingEntry, WorkingEntryInfo
from shared.platform.resources import Resources

FAMILY = declare_store(
    "redis",
    "working",
    *(Subject.SESSION, Subject.USER, Subject.AGENT),
    reason="a session's namespace is cleared with it, those of patrols and subagents with user or agent",
)
MAX_TTL_SECONDS = 366 * 24 * 3600
# A registered namespace must outlive its entries by more than a client waits for Redis.
_REGISTRATION_GRACE_MS = 60_000
# Namespaces read in one pipeline: this bounds what one reply holds, without values and with them.
_BATCH = 256
_BATCH_WITH_VALUES = 8


@dataclass(frozen=True, slots=True)
class WorkingMemory:
    """One tenant's working memory. The client must decode responses."""

    redis: Redis
    settings: Settings
    tenant: str

    def __post_init__(self) -> None:
        validation.check_identifier(self.tenant, "tenant")

    @classmethod
    def from_resources(cls, resources: Resources, tenant: str) -> "WorkingMemory":
        """Return a tenant's working memory in the Redis of this process."""
        return cls(resources.redis, resources.settings, tenant)


async def put(
    working_memory: WorkingMemory,
    key: str,
    value: str,
    *,
    ttl_seconds: float | None = None,
    category: str | None = None,
    tags: Iterable[str] = (),
) -> WorkingEntry:
    """Write an entry under its full path and return it as `get` would.

    Overwriting is always allowed. It keeps the key as first written and starts the time to live anew.
    Raises errors.Invalid for bad input, and errors.LimitReached for a new key when its namespace already
    holds as many live entries as it may.
    """
    path, ttl_ms, details = check_entry(
        working_memory, key, value, ttl_seconds=ttl_seconds, category=category, tags=tags
    )
    version, expires_at, stored_key = await _write(working_memory, path, value, ttl_ms, details)
    entry = codec.entry([str(ttl_ms), expires_at, f"{version}\n{stored_key}\n{details}", value])
    return large_values.with_outline(entry, working_memory.settings.working_chunk_size)


def check_entry(
    working_memory: WorkingMemory,
    key: str,
    value: str,
    *,
    ttl_seconds: float | None = None,
    category: str | None = None,
    tags: Iterable[str] = (),
) -> tuple[str, int, str]:
    """Return an entry's path, its milliseconds to live and its packed details.

    Raises errors.Invalid if the entry may not be written.
    """
    path = keys.check_writable(key)
    validation.check_text(value, "value", allow_blank=True)
    is_large = len(value) > working_memory.settings.working_chunk_threshold
    ttl_ms = _ttl_ms(working_memory.settings, ttl_seconds, is_large=is_large)
    return path, ttl_ms, codec.pack(category, tags, large=is_large)


def _ttl_ms(settings: Settings, ttl_seconds: float | None, *, is_large: bool) -> int:
    if ttl_seconds is None:
        ttl_seconds = settings.working_chunked_ttl if is_large else settings.working_ttl
    if not 0 < ttl_seconds <= MAX_TTL_SECONDS:
        raise errors.Invalid("ttl_seconds", f"must be more than 0 and at most {MAX_TTL_SECONDS}")
    return max(1, int(ttl_seconds * 1000))


async def _write(
    working_memory: WorkingMemory, path: str, value: str, ttl_ms: int, details: str
) -> Sequence[str]:
    namespace, limit = keys.namespace_of(path), working_memory.settings.working_max_entries
    register = _ScriptCall(
        scripts.REGISTER_NAMESPACE, _registry(working_memory), (namespace, ttl_ms + _REGISTRATION_GRACE_MS)
    )
    write = _ScriptCall(
        scripts.PUT,
        _keys(working_memory, namespace),
        (keys.normalize_key(path), path, value, ttl_ms, limit, details),
    )
    _, stored = await _run(working_memory, [register, write])
    if stored is None:
        raise errors.LimitReached(
            f"the namespace '{namespace}' is at its limit of {limit} live entries;"
            " delete one, overwrite one or wait until one expires"
        )
    return stored  # type: ignore[no-any-return]


async def get(working_memory: WorkingMemory, key: str, *, full: bool = False) -> WorkingEntry:
    """Return a live entry, or a part of a large one.

    The value of a large entry is its outline unless `full`. Raises errors.NotFound if there is no such
    entry or part.
    """
    view = keys.parse_view(keys.check_key(key))
    chunk_size = working_memory.settings.working_chunk_size
    async for row in _read(working_memory, {keys.namespace_of(view.base): (view.base,)}, with_values=True):
        entry = large_values.select_view(codec.entry(row), view, chunk_size)
        if entry is not None:
            return entry if full else large_values.with_outline(entry, chunk_size)
    raise errors.NotFound(f"working memory holds no live entry '{key}'")


async def read_many(working_memory: WorkingMemory, paths: Iterable[str]) -> dict[str, WorkingEntry]:
    """Return the live entries among these full paths, by the path as it was passed.

    Values are whole: a search re-reads its hits with this.
    """
    views = {path: keys.parse_view(keys.check_key(path)) for path in paths}
    keys_by_namespace: dict[str, set[str]] = {}
    for view in views.values():
        keys_by_namespace.setdefault(keys.namespace_of(view.base), set()).add(view.base)
    live = {
        keys.normalize_key(entry.key): entry
        async for entry in _read_entries(working_memory, keys_by_namespace)
    }
    chunk_size = working_memory.settings.working_chunk_size
    viewed = {
        path: large_values.select_view(live[view.base], view, chunk_size)
        for path, view in views.items()
        if view.base in live
    }
    return {path: entry for path, entry in viewed.items() if entry is not None}


async def delete(working_memory: WorkingMemory, key: str) -> bool:
    """Delete an entry with its parts, and return whether there was a live one."""
    path = keys.check_writable(key)
    names = _keys(working_memory, keys.namespace_of(path))
    (deleted,) = await _run(working_memory, [_ScriptCall(scripts.DELETE, names, (keys.normalize_key(path),))])
    return bool(deleted)


async def read_time(working_memory: WorkingMemory) -> int:
    """Return the time of the Redis server in microseconds. Entries written later have higher versions."""
    seconds, microseconds = await working_memory.redis.time()
    return int(seconds) * 1_000_000 + int(microseconds)


async def clear(working_memory: WorkingMemory, prefix: str) -> int:
    """Delete everything at and below a prefix, and return the number of deleted live entries."""
    path = keys.normalize_key(keys.resolve_prefix(prefix, None, write=True))
    namespaces = await _list_namespaces(working_memory, path)
    calls = [_ScriptCall(scripts.CLEAR, _keys(working_memory, name), (path,)) for name in namespaces]
    return sum(await _run(working_memory, calls))


async def iterate_entries(working_memory: WorkingMemory, prefix: str = "") -> AsyncIterator[WorkingEntry]:
    """Yield the live entries at and below a prefix with whole values, for a search without the index.

    Only a few namespaces are in memory at a time, because a value may have a megabyte.
    """
    path = keys.normalize_key(keys.resolve_prefix(prefix, None))
    namespaces = await _list_namespaces(working_memory, path)
    async for entry in _read_entries(working_memory, dict.fromkeys(namespaces, ())):
        if keys.is_within(entry.key, path):
            yield entry


async def _list_namespaces(working_memory: WorkingMemory, path: str) -> list[str]:
    if not keys.spans_namespaces(path):
        return [keys.namespace_of(path)]
    (names,) = await _run(
        working_memory, [_ScriptCall(scripts.LIST_NAMESPACES, _registry(working_memory), (path,))]
    )
    return list(names)


async def list_entries(
    working_memory: WorkingMemory, prefix: str = "", *, include_views: bool = False
) -> list[WorkingEntryInfo]:
    """Return the entries at and below a prefix (empty: the whole tenant), sorted by key, without values.

    A large entry is one item. With `include_views` its outline, `{key}-index`, is another. The outline in
    turn names the chunks.
    """
    return (await list_many_prefixes(working_memory, prefix, include_views=include_views))[prefix]


async def list_many_prefixes(
    working_memory: WorkingMemory, *prefixes: str, include_views: bool = False
) -> dict[str, list[WorkingEntryInfo]]:
    """Return the listings of several prefixes, by prefix.

    This takes one round trip, and a second one only if a prefix that spans namespaces finds any.
    """
    paths = [keys.normalize_key(keys.resolve_prefix(prefix, None)) for prefix in prefixes]
    replies = await _run(working_memory, [_listing_call(working_memory, path) for path in paths])
    by_path = list(zip(paths, replies, strict=True))
    rows = [row for path, reply in by_path if not keys.spans_namespaces(path) for row in reply]
    namespaces = {name for path, reply in by_path if keys.spans_namespaces(path) for name in reply}
    more_rows = _read(working_memory, dict.fromkeys(sorted(namespaces), ()), with_values=False)
    rows += [row async for row in more_rows]
    infos = _sorted_by_key(map(codec.listing, rows), include_views=include_views)
    return {prefix: [info for info in infos if keys.is_within(info.key, prefix)] for prefix in prefixes}


def _listing_call(working_memory: WorkingMemory, path: str) -> "_ScriptCall":
    """Return the call that lists a namespace, or the namespaces of a prefix that spans several."""
    if keys.spans_namespaces(path):
        return _ScriptCall(scripts.LIST_NAMESPACES, _registry(working_memory), (path,))
    return _ScriptCall(scripts.READ, _keys(working_memory, keys.namespace_of(path))[:2])


def _sorted_by_key(infos: Iterable[WorkingEntryInfo], *, include_views: bool) -> list[WorkingEntryInfo]:
    # A dict by key, because two prefixes may have read the same namespace.
    by_key = {keys.normalize_key(info.key): info for info in infos}
    if include_views:
        outlines = [large_values.outline_info(info) for info in by_key.values() if info.large]
        by_key |= {keys.normalize_key(info.key): info for info in outlines}
    return [by_key[key] for key in sorted(by_key)]


async def _read_entries(
    working_memory: WorkingMemory, keys_by_namespace: Mapping[str, Iterable[str]]
) -> AsyncIterator[WorkingEntry]:
    async for row in _read(working_memory, keys_by_namespace, with_values=True):
        yield codec.entry(row)


async def _read(
    working_memory: WorkingMemory, keys_by_namespace: Mapping[str, Iterable[str]], *, with_values: bool
) -> AsyncIterator[codec.Row]:
    """Yield the rows of these normalised keys, by namespace. A namespace without keys is read whole."""
    calls = [
        _ScriptCall(scripts.READ, _keys(working_memory, namespace)[: 3 if with_values else 2], tuple(names))
        for namespace, names in keys_by_namespace.items()
    ]
    size = _BATCH_WITH_VALUES if with_values else _BATCH
    for start in range(0, len(calls), size):
        for rows in await _run(working_memory, calls[start : start + size]):
            for row in rows:
                yield row


class _ScriptCall(NamedTuple):
    script: str
    names: Sequence[str]
    arguments: Sequence[str | int] = ()


async def _run(working_memory: WorkingMemory, calls: Iterable[_ScriptCall]) -> list[Any]:
    """Run scripts in order and in one round trip. Each is atomic; together they are not."""
    async with working_memory.redis.pipeline(transaction=False) as pipe:
        for script, names, arguments in calls:
            pipe.eval(script, len(names), *names, *arguments)
        return await pipe.execute()


def _keys(working_memory: WorkingMemory, namespace: str) -> tuple[str, str, str]:
    tag = f"{working_memory.settings.prefix}:{FAMILY}:{{{working_memory.tenant}:{namespace}}}"
    return f"{tag}:expiry", f"{tag}:meta", f"{tag}:values"


def _registry(working_memory: WorkingMemory) -> tuple[str, str]:
    tag = f"{working_memory.settings.prefix}:{FAMILY}:{{{working_memory.tenant}}}"
    return f"{tag}:namespaces", f"{tag}:expiries"
