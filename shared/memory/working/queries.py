"""Every Redis operation on the desk, by name.

Each function takes the `Desk`, which carries the tenant: Redis keys are built in `_keys` and
`_registry` at the end of this file, and no caller can name another tenant's. A `:` stands between
tenant and namespace, because a tenant cannot contain one (`/` would let tenant `a/b` with namespace
`c` meet tenant `a` with namespace `b/c`).

A namespace is announced in the tenant's list before the entry is written, in the same pipeline.
The list is how a prefix wider than one namespace is read; it is a hint and never a count.

Errors of Redis pass through as redis exceptions; the caller decides what a missing desk means.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from redis.asyncio import Redis

from shared.foundation import errors, validation
from shared.foundation.config import Settings
from shared.memory.working import chunks, codec, keys, scripts
from shared.memory.working.working_entry import WorkingEntry, WorkingEntryInfo

MAX_TTL_SECONDS = 366 * 24 * 3600
# The list of namespaces outlives what it names by more than any client waits for Redis.
_GRACE_MS = 60_000
# Namespaces read in one pipeline: what one answer may hold at once, without values and with.
_BATCH = 256
_BATCH_OF_VALUES = 8


@dataclass(frozen=True, slots=True)
class WorkingMemory:
    """One tenant's working memory. The client must decode responses."""

    redis: Redis
    settings: Settings
    tenant: str

    def __post_init__(self) -> None:
        validation.check_identifier(self.tenant, "tenant")


async def put(
    desk: WorkingMemory,
    key: str,
    value: str,
    *,
    ttl_seconds: float | None = None,
    category: str | None = None,
    tags: Iterable[str] = (),
) -> WorkingEntry:
    """Write an entry under its full path and return it as `get` would.

    Overwriting is always allowed; it keeps the key as first written and starts its time anew. A new
    key raises LimitReached when its namespace holds as many live entries as it may.
    """
    path, life, rest = check(desk, key, value, ttl_seconds=ttl_seconds, category=category, tags=tags)
    stored_at, ends, written = await _write(desk, path, value, life, rest)
    return _shown(desk, codec.entry([str(life), ends, f"{stored_at}\n{written}\n{rest}", value]))


def check(
    desk: WorkingMemory,
    key: str,
    value: str,
    *,
    ttl_seconds: float | None = None,
    category: str | None = None,
    tags: Iterable[str] = (),
) -> tuple[str, int, str]:
    """Return (path, milliseconds to live, packed rest) of an entry; Invalid if it may not be written."""
    path = keys.check_writable(key)
    validation.check_text(value, "value", allow_blank=True)
    large = len(value) > desk.settings.working_chunk_threshold
    life = _life(desk.settings, ttl_seconds, large=large)
    return path, life, codec.pack(category, tags, large=large)


def _life(settings: Settings, ttl_seconds: float | None, *, large: bool) -> int:
    """Return the milliseconds that an entry lives."""
    if ttl_seconds is None:
        ttl_seconds = settings.working_chunked_ttl if large else settings.working_ttl
    if not 0 < ttl_seconds <= MAX_TTL_SECONDS:
        raise errors.Invalid("ttl_seconds", f"must be more than 0 and at most {MAX_TTL_SECONDS}")
    return max(1, int(ttl_seconds * 1000))


async def _write(desk: WorkingMemory, path: str, value: str, life: int, rest: str) -> Sequence[str]:
    namespace, limit = keys.namespace_of(path), desk.settings.working_max_entries
    announce = _Call(scripts.REGISTER_NAMESPACE, _registry(desk), (namespace, life + _GRACE_MS))
    write = _Call(
        scripts.PUT, _keys(desk, namespace), (keys.normalize_key(path), path, value, life, limit, rest)
    )
    _, stored = await _run(desk, [announce, write])
    if stored is None:
        raise errors.LimitReached(
            f"the namespace '{namespace}' is at its limit of {limit} live entries;"
            " delete one, overwrite one or wait until one expires"
        )
    return stored  # type: ignore[no-any-return]


async def get(desk: WorkingMemory, key: str, *, full: bool = False) -> WorkingEntry:
    """Return a live entry, or a part of a large one; NotFound if there is none.

    The value of a large entry is its outline unless `full`.
    """
    view = keys.parse_view(keys.check_key(key))
    async for row in _read(desk, {keys.namespace_of(view.base): (view.base,)}, values=True):
        entry = _viewed(desk, codec.entry(row), view)
        if entry is not None:
            return entry if full else _shown(desk, entry)
    raise errors.NotFound(f"working memory holds no live entry '{key}'")


def _viewed(desk: WorkingMemory, entry: WorkingEntry, view: keys.View) -> WorkingEntry | None:
    """Return the part of an entry that a view names, None if it has no such part."""
    if not view.is_part:
        return entry
    if not entry.large:
        return None
    part: dict[str, Any] = {"large": False}
    if view.chunk is None:
        part |= {"key": f"{entry.key}-index", "value": _outline(desk, entry)}
        return entry.model_copy(update=part)
    parts = chunks.split(entry.value, desk.settings.working_chunk_size)
    if view.chunk >= len(parts):
        return None
    part |= {"key": f"{entry.key}-chunk{view.chunk}", "value": parts[view.chunk].text}
    return entry.model_copy(update=part)


def _shown(desk: WorkingMemory, entry: WorkingEntry) -> WorkingEntry:
    return entry.model_copy(update={"value": _outline(desk, entry)}) if entry.large else entry


def _outline(desk: WorkingMemory, entry: WorkingEntry) -> str:
    return chunks.outline(entry.key, entry.value, desk.settings.working_chunk_size)


async def read_many(desk: WorkingMemory, paths: Iterable[str]) -> dict[str, WorkingEntry]:
    """Return the live entries among these full paths, by the path that was asked for.

    Values are whole: this is how hits of the index are re-read.
    """
    views = {path: keys.parse_view(keys.check_key(path)) for path in paths}
    fields: dict[str, set[str]] = {}
    for view in views.values():
        fields.setdefault(keys.namespace_of(view.base), set()).add(view.base)
    live = {keys.normalize_key(entry.key): entry async for entry in _entries(desk, fields)}
    asked = ((path, view) for path, view in views.items() if view.base in live)
    found = ((path, _viewed(desk, live[view.base], view)) for path, view in asked)
    return {path: entry for path, entry in found if entry is not None}


async def delete(desk: WorkingMemory, key: str) -> bool:
    """Delete an entry with its parts; tell whether there was a live one."""
    path = keys.check_writable(key)
    call = _Call(scripts.DELETE, _keys(desk, keys.namespace_of(path)), (keys.normalize_key(path),))
    return bool((await _run(desk, [call]))[0])


async def clear(desk: WorkingMemory, prefix: str) -> int:
    """Delete everything at and beneath a prefix; return how many live entries that were."""
    path = keys.normalize_key(keys.resolve_prefix(prefix, None, write=True))
    names = await _namespaces(desk, path)
    return sum(await _run(desk, [_Call(scripts.CLEAR, _keys(desk, name), (path,)) for name in names]))


async def entries(desk: WorkingMemory, prefix: str = "") -> AsyncIterator[WorkingEntry]:
    """Yield the live entries at and beneath a prefix with whole values, to be searched in process.

    A few namespaces are held at a time: a value may be a megabyte.
    """
    path = keys.normalize_key(keys.resolve_prefix(prefix, None))
    async for entry in _entries(desk, dict.fromkeys(await _namespaces(desk, path), ())):
        if keys.is_within(entry.key, path):
            yield entry


async def _namespaces(desk: WorkingMemory, path: str) -> list[str]:
    if not keys.spans_namespaces(path):
        return [keys.namespace_of(path)]
    (names,) = await _run(desk, [_Call(scripts.LIST_NAMESPACES, _registry(desk), (path,))])
    return list(names)


async def list_entries(
    desk: WorkingMemory, prefix: str = "", *, include_views: bool = False
) -> list[WorkingEntryInfo]:
    """Return what lies at and beneath a prefix (empty: the whole tenant), ordered by key.

    A large entry is one line. With `include_views` the line of its outline, `{key}-index`, follows;
    the outline in turn names the chunks.
    """
    return (await list_many_prefixes(desk, prefix, include_views=include_views))[prefix]


async def list_many_prefixes(
    desk: WorkingMemory, *prefixes: str, include_views: bool = False
) -> dict[str, list[WorkingEntryInfo]]:
    """Return the listings of several prefixes, by prefix.

    One round trip, and a second one only if a prefix wider than a namespace finds any.
    """
    paths = [keys.normalize_key(keys.resolve_prefix(prefix, None)) for prefix in prefixes]
    answers = await _run(desk, [_look(desk, path) for path in paths])
    looked = list(zip(paths, answers, strict=True))
    rows = [row for path, answer in looked if not keys.spans_namespaces(path) for row in answer]
    names = {name for path, answer in looked if keys.spans_namespaces(path) for name in answer}
    rows += [row async for row in _read(desk, dict.fromkeys(sorted(names), ()), values=False)]
    ordered = _ordered(map(codec.listing, rows), include_views=include_views)
    return {prefix: [each for each in ordered if keys.is_within(each.key, prefix)] for prefix in prefixes}


def _look(desk: WorkingMemory, path: str) -> "_Call":
    if keys.spans_namespaces(path):
        return _Call(scripts.LIST_NAMESPACES, _registry(desk), (path,))
    return _Call(scripts.READ, _keys(desk, keys.namespace_of(path))[:2])


def _ordered(found: Iterable[WorkingEntryInfo], *, include_views: bool) -> list[WorkingEntryInfo]:
    # By key, because two prefixes may have read the same namespace.
    listed = {keys.normalize_key(listing.key): listing for listing in found}
    if include_views:
        large = [listing for listing in listed.values() if listing.large]
        indexes = [one.model_copy(update={"key": f"{one.key}-index", "large": False}) for one in large]
        listed |= {keys.normalize_key(index.key): index for index in indexes}
    return [listed[key] for key in sorted(listed)]


async def _entries(desk: WorkingMemory, fields: Mapping[str, Iterable[str]]) -> AsyncIterator[WorkingEntry]:
    async for row in _read(desk, fields, values=True):
        yield codec.entry(row)


async def _read(
    desk: WorkingMemory, fields: Mapping[str, Iterable[str]], *, values: bool
) -> AsyncIterator[codec.Row]:
    """Yield the rows of these folded keys, by namespace; of all its keys where none is named."""
    calls = [
        _Call(scripts.READ, _keys(desk, name)[: 3 if values else 2], tuple(wanted))
        for name, wanted in fields.items()
    ]
    size = _BATCH_OF_VALUES if values else _BATCH
    for start in range(0, len(calls), size):
        for rows in await _run(desk, calls[start : start + size]):
            for row in rows:
                yield row


class _Call(NamedTuple):
    script: str
    names: Sequence[str]
    arguments: Sequence[str | int] = ()


async def _run(desk: WorkingMemory, calls: Iterable[_Call]) -> list[Any]:
    """Run scripts in order and in one round trip; each is atomic, together they are not."""
    async with desk.redis.pipeline(transaction=False) as pipe:
        for script, names, arguments in calls:
            pipe.eval(script, len(names), *names, *arguments)
        return await pipe.execute()


def _keys(desk: WorkingMemory, namespace: str) -> tuple[str, str, str]:
    tag = f"{desk.settings.prefix}:working:{{{desk.tenant}:{namespace}}}"
    return f"{tag}:expiry", f"{tag}:meta", f"{tag}:values"


def _registry(desk: WorkingMemory) -> tuple[str, str]:
    tag = f"{desk.settings.prefix}:working:{{{desk.tenant}}}"
    return f"{tag}:namespaces", f"{tag}:expiries"
