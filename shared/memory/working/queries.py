"""Every Redis operation on working memory.

Each function takes the `WorkingMemory`, which carries the tenant and builds all names of keys in Redis.

A namespace is registered in the tenant's list before the entry is written, in the same pipeline.
The list serves to read a prefix that spans namespaces. It may name namespaces that are empty by now,
so it is never counted.

Errors of Redis pass through as redis exceptions; the caller decides what an unavailable Redis means.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

from shared.foundation import errors, versions
from shared.foundation.origin import UNKNOWN, Origin, Trust
from shared.foundation.versions import Expected
from shared.infra.redis_versions import version_list
from shared.memory.working import codec, keys, large_values, rules, scripts
from shared.memory.working.working_entry import WorkingEntry, WorkingEntryInfo
from shared.memory.working.working_memory import ScriptCall, WorkingMemory

# A registered namespace must outlive its entries by more than a client waits for Redis.
_REGISTRATION_GRACE_MS = 60_000
# Namespaces read in one pipeline: this bounds what one reply holds, without values and with them.
_BATCH = 256
_BATCH_WITH_VALUES = 8


async def put(
    working_memory: WorkingMemory,
    key: str,
    value: str,
    *,
    ttl_seconds: float | None = None,
    category: str | None = None,
    tags: Iterable[str] = (),
    expected: Expected | None = None,
    origin: Origin = UNKNOWN,
) -> WorkingEntry:
    """Write an entry under its full path and return it as `get` would.

    Overwriting keeps the key as first written and starts the time to live anew; without `expected` it is
    always allowed. Raises errors.Invalid for bad input, errors.PreconditionFailed for a stored version that
    is not expected, and errors.LimitReached for a new key when its namespace already holds as many live
    entries as it may.
    """
    path, ttl_ms, details = rules.check_entry(
        working_memory.settings,
        key,
        value,
        ttl_seconds=ttl_seconds,
        category=category,
        tags=tags,
        origin=origin,
    )
    version, expires_at, stored_key = await _write(working_memory, path, value, ttl_ms, details, expected)
    entry = codec.entry([str(ttl_ms), expires_at, f"{version}\n{stored_key}\n{details}", value])
    return large_values.with_outline(entry, working_memory.settings.working_chunk_size)


async def _write(
    working_memory: WorkingMemory, path: str, value: str, ttl_ms: int, details: str, expected: Expected | None
) -> Sequence[str]:
    namespace, limit = keys.namespace_of(path), working_memory.settings.working_max_entries
    condition = version_list(expected)
    arguments = (keys.normalize_key(path), path, value, ttl_ms, limit, details, condition)
    write = ScriptCall(scripts.PUT, working_memory.keys_of(namespace), arguments)
    _, reply = await working_memory.run([_registration(working_memory, namespace, ttl_ms), write])
    if reply is None:
        raise errors.LimitReached(
            f"the namespace '{namespace}' is at its limit of {limit} live entries;"
            " delete one, overwrite one or wait until one expires"
        )
    return _written(path, reply)


def _registration(working_memory: WorkingMemory, namespace: str, ttl_ms: int) -> ScriptCall:
    arguments = (namespace, ttl_ms + _REGISTRATION_GRACE_MS)
    return ScriptCall(scripts.REGISTER_NAMESPACE, working_memory.registry, arguments)


def _written(path: str, reply: Sequence[Any]) -> Sequence[str]:
    """Return what a script says of its write. Raises errors.PreconditionFailed if it wrote nothing."""
    is_written, *rest = reply
    if not is_written:
        raise versions.mismatch(_entry_name(path), int(rest[0]))
    return rest


async def append(
    working_memory: WorkingMemory,
    key: str,
    text: str,
    *,
    ttl_seconds: float | None = None,
    expected: Expected | None = None,
    request_id: str = "",
    trust: Trust = UNKNOWN.trust,
) -> WorkingEntry:
    """Append a text to the value of a live entry and return the entry with its whole value.

    The whole is trusted as its least trusted part.

    The time to live goes on unless `ttl_seconds` starts it anew. A request with an id that was done before
    appends nothing and returns the entry as it is. Raises errors.NotFound without a live entry,
    errors.TooLarge for a value over the limit, and errors.PreconditionFailed as `put` does.
    """
    path, ttl_ms = rules.check_append(key, text, ttl_seconds=ttl_seconds)
    namespace, threshold = keys.namespace_of(path), working_memory.settings.working_chunk_threshold
    arguments = (keys.normalize_key(path), text, rules.MAX_VALUE_BYTES, threshold, ttl_ms or "")
    call = ScriptCall(
        scripts.APPEND,
        working_memory.keys_of(namespace),
        (*arguments, version_list(expected), request_id, trust.value, *(rank.value for rank in Trust)),
    )
    registrations = [_registration(working_memory, namespace, ttl_ms)] if ttl_ms else []
    *_, reply = await working_memory.run([*registrations, call])
    if reply is None:
        raise errors.NotFound(missing(key))
    if reply == scripts.TOO_LONG:
        raise rules.too_long("append")
    return codec.entry(_written(path, reply))


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
    raise errors.NotFound(missing(key))


def missing(key: str) -> str:
    """Return what the error for a key says that nothing live is stored under."""
    return f"working memory holds no live entry '{key}'"


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


async def delete(working_memory: WorkingMemory, key: str, *, expected: Expected | None = None) -> bool:
    """Delete an entry with its parts, and return whether there was a live one.

    Raises errors.PreconditionFailed for a stored version that is not expected.
    """
    path = keys.check_writable(key)
    names = working_memory.keys_of(keys.namespace_of(path))
    arguments = (keys.normalize_key(path), version_list(expected))
    (reply,) = await working_memory.run([ScriptCall(scripts.DELETE, names, arguments)])
    (version,) = _written(path, reply)
    return int(version) > 0


async def check_version(working_memory: WorkingMemory, key: str, expected: Expected) -> None:
    """Raise errors.PreconditionFailed if the stored version of an entry is not an expected one."""
    field = keys.normalize_key(key)
    rows = [row async for row in _read(working_memory, {keys.namespace_of(key): (field,)}, with_values=False)]
    version = codec.listing(rows[0]).version if rows else versions.ABSENT
    versions.check(_entry_name(key), version, expected)


def _entry_name(path: str) -> str:
    """Return how a failed condition names an entry."""
    return f"the entry '{path}'"


async def read_time(working_memory: WorkingMemory) -> int:
    """Return the time of the Redis server in microseconds. Entries written later have higher versions."""
    seconds, microseconds = await working_memory.redis.time()
    return int(seconds) * 1_000_000 + int(microseconds)


async def clear(working_memory: WorkingMemory, prefix: str) -> int:
    """Delete everything at and below a prefix, and return the number of deleted live entries."""
    path = keys.normalize_key(keys.resolve_prefix(prefix, None, write=True))
    namespaces = await list_namespaces(working_memory, path)
    calls = [ScriptCall(scripts.CLEAR, working_memory.keys_of(name), (path,)) for name in namespaces]
    return sum(await working_memory.run(calls))


async def iterate_entries(working_memory: WorkingMemory, prefix: str = "") -> AsyncIterator[WorkingEntry]:
    """Yield the live entries at and below a prefix with whole values, for a search without the index.

    Only a few namespaces are in memory at a time, because a value may have a megabyte.
    """
    path = keys.normalize_key(keys.resolve_prefix(prefix, None))
    namespaces = await list_namespaces(working_memory, path)
    async for entry in _read_entries(working_memory, dict.fromkeys(namespaces, ())):
        if keys.is_within(entry.key, path):
            yield entry


async def list_namespaces(working_memory: WorkingMemory, prefix: str) -> list[str]:
    """Return the namespaces at and below a prefix. Some may be empty by now."""
    path = keys.normalize_key(keys.resolve_prefix(prefix, None))
    if not keys.spans_namespaces(path):
        return [keys.namespace_of(path)]
    (names,) = await working_memory.run(
        [ScriptCall(scripts.LIST_NAMESPACES, working_memory.registry, (path,))]
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
    replies = await working_memory.run([_listing_call(working_memory, path) for path in paths])
    by_path = list(zip(paths, replies, strict=True))
    rows = [row for path, reply in by_path if not keys.spans_namespaces(path) for row in reply]
    namespaces = {name for path, reply in by_path if keys.spans_namespaces(path) for name in reply}
    more_rows = _read(working_memory, dict.fromkeys(sorted(namespaces), ()), with_values=False)
    rows += [row async for row in more_rows]
    infos = _sorted_by_key(map(codec.listing, rows), include_views=include_views)
    return {prefix: [info for info in infos if keys.is_within(info.key, prefix)] for prefix in prefixes}


def _listing_call(working_memory: WorkingMemory, path: str) -> ScriptCall:
    """Return the call that lists a namespace, or the namespaces of a prefix that spans several."""
    if keys.spans_namespaces(path):
        return ScriptCall(scripts.LIST_NAMESPACES, working_memory.registry, (path,))
    return ScriptCall(scripts.READ, working_memory.keys_of(keys.namespace_of(path))[:2])


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
        ScriptCall(scripts.READ, working_memory.keys_of(namespace)[: 3 if with_values else 2], tuple(names))
        for namespace, names in keys_by_namespace.items()
    ]
    size = _BATCH_WITH_VALUES if with_values else _BATCH
    for start in range(0, len(calls), size):
        for rows in await working_memory.run(calls[start : start + size]):
            for row in rows:
                yield row
