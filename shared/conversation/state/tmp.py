"""`tmp`: the store that forgets, in Redis alone.

Nothing of it is durable: after its time, counted from the last write, every key is simply unknown.
Redis keys are built in `_keys` and nowhere else; a `:` stands between tenant and owner, because no
tenant contains one.
"""

import base64
from collections.abc import Collection as Several
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from redis.asyncio import Redis

from shared.conversation.state import rules, scripts
from shared.conversation.state.types import (
    Caps,
    CollectionInfo,
    CollectionSnapshot,
    KeyEntry,
    Owner,
    OwnerKind,
    TranscriptDraft,
    TranscriptEntry,
    version_to_time,
)
from shared.conversation.values import collection_codec, json_codec
from shared.conversation.values.collection import Collection
from shared.conversation.values.value import Value
from shared.foundation.roles import Role
from shared.infra import redis as redis_client
from shared.platform.resources import Resources

_PARTS = ("written", "keys", "order", "transcript", "labels", "values")


@dataclass(frozen=True, slots=True)
class RedisStateStore:
    """The fleeting store of one owner: see `protocol.Store`. `ttl` is in seconds."""

    redis: Redis
    prefix: str
    owner: Owner
    caps: Caps
    ttl: float
    name: str = "tmp"

    async def set_key(self, key: str, value: Value) -> KeyEntry:  # noqa: D102  (see the protocol)
        rules.check_key(self, key)
        written = await self._run(scripts.SET_KEY, self._life, key, json_codec.dumps(value), self.caps.keys)
        return KeyEntry(key, value, int(written))

    async def get_key(self, key: str) -> KeyEntry | None:  # noqa: D102
        rules.check_key(self, key)
        value, written = await self._run(scripts.GET_KEY, key)
        return (
            None
            if value is None or written is None
            else KeyEntry(key, json_codec.loads(value), _whole(written))
        )

    async def delete_key(self, key: str) -> bool:  # noqa: D102
        rules.check_key(self, key)
        return bool(await self._run(scripts.DELETE_KEY, self._life, key))

    async def list_keys(self, limit: int, after: int = 0) -> list[KeyEntry]:  # noqa: D102
        rules.check_operation(self, "kv")
        rows = await self._run(scripts.LIST_KEYS, limit, after)
        return [KeyEntry(key, json_codec.loads(value), _whole(written)) for key, value, written in rows]

    async def append(self, draft: TranscriptDraft) -> TranscriptEntry:  # noqa: D102
        rules.check_operation(self, "transcript")
        said = draft.validated()
        packed = orjson.dumps([said.role, said.content, dict(said.metadata)]).decode()
        written = await self._run(scripts.APPEND, self._life, packed, self.caps.entries)
        return TranscriptEntry(said.role, said.content, said.metadata, version_to_time(int(written)))

    async def transcript(self, last: int) -> list[TranscriptEntry]:  # noqa: D102
        rules.check_operation(self, "transcript")
        return [_entry(packed) for packed in await self._run(scripts.TRANSCRIPT, last)]

    async def get_collection(self, label: str) -> CollectionSnapshot | None:  # noqa: D102
        rules.check_label(self, label)
        packed, value = await self._run(scripts.GET_COLLECTION, label)
        if packed is None or value is None:
            return None
        listing = _listing(label, packed)
        head, data = orjson.loads(value)
        held = collection_codec.decode_collection(
            listing.type, head, None if data is None else base64.b64decode(data)
        )
        return CollectionSnapshot(listing, held)

    async def put_collection(  # noqa: D102
        self, label: str, collection: Collection, *, index: bool, expected: Several[int] | None = None
    ) -> CollectionInfo:
        rules.check_label(self, label)
        value, data = collection_codec.dump_parts(collection)
        listed = (collection_codec.collection_type(collection), index, collection_codec.size_of(value, data))
        # Text beside text: the value is JSON already, and base64 needs no quoting.
        bits = "null" if data is None else f'"{base64.b64encode(data).decode()}"'
        packed = (orjson.dumps(listed).decode(), f"[{value},{bits}]")
        version = await self._change(scripts.PUT_COLLECTION, label, expected, *packed)
        return CollectionInfo(label, *listed, version)

    async def remove_collection(self, label: str, *, expected: Several[int] | None = None) -> bool:  # noqa: D102
        rules.check_label(self, label)
        return await self._change(scripts.REMOVE_COLLECTION, label, expected) > 0

    async def _change(self, script: str, label: str, expected: Several[int] | None, *told: str) -> int:
        versions = "" if expected is None else f",{','.join(map(str, expected))},"
        done, version = await self._run(script, self._life, label, versions, *told)
        if not done:
            raise rules.version_conflict(label, int(version))
        return int(version)

    async def list_collections(self) -> list[CollectionInfo]:  # noqa: D102
        rules.check_operation(self, "collections")
        rows = await self._run(scripts.LIST_COLLECTIONS)
        return [_listing(label, packed) for label, packed in sorted(zip(rows[::2], rows[1::2], strict=True))]

    async def drop(self) -> bool:  # noqa: D102
        return int(await self._run(scripts.DROP)) > 0

    async def expires_at(self) -> datetime | None:
        """Return when the store will be gone; None if it holds nothing."""
        left = await self._run(scripts.EXPIRY)
        return None if left < 0 else datetime.now(UTC) + timedelta(milliseconds=left)

    @property
    def _life(self) -> int:
        return max(1, int(self.ttl * 1000))

    async def _run(self, script: str, *arguments: str | int) -> Any:
        names = self._keys()
        with redis_client.failures_as_unavailable():
            return await self.redis.eval(script, len(names), *names, *arguments)

    def _keys(self) -> list[str]:
        owner = self.owner
        tag = f"{self.prefix}:state:{{{owner.tenant}:{owner.kind}:{owner.id}}}"
        return [f"{tag}:{part}" for part in _PARTS]


def open_tmp(resources: Resources, owner: Owner, ttl_seconds: float | None = None) -> RedisStateStore:
    """Open the fleeting store of an owner; `ttl_seconds` is the setting's if not given."""
    settings = resources.settings
    caps = Caps.from_settings(settings, owner.kind)
    return RedisStateStore(resources.redis, settings.prefix, owner, caps, ttl_seconds or settings.tmp_ttl)


async def drop_of_sessions(resources: Resources, tenant: str, session_ids: Sequence[str]) -> None:
    """Drop what sessions that were deleted held here; what is durable went with their rows.

    Raises errors.Unavailable when Redis is away: then it goes when its time is over.
    """
    for session_id in session_ids:
        await open_tmp(resources, Owner(tenant, OwnerKind.SESSION, session_id)).drop()


def _whole(score: str) -> int:
    return int(float(score))


def _entry(packed: str) -> TranscriptEntry:
    written, _, said = packed.partition("\n")
    role, content, metadata = orjson.loads(said)
    return TranscriptEntry(Role(role), content, metadata, version_to_time(int(written)))


def _listing(label: str, packed: str) -> CollectionInfo:
    version, _, listed = packed.partition("\n")
    kind, index, size = orjson.loads(listed)
    return CollectionInfo(label, kind, index, size, int(version))
