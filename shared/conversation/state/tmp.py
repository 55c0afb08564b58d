"""`tmp`: the temporary state store, which exists only in Redis.

Nothing of it is durable: the whole store expires a fixed time after its last write. Redis keys are
built in `_redis_keys` and nowhere else. The separator between tenant and owner is `:`, because no
tenant contains one.
"""

import base64
from collections import abc
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
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
from shared.foundation import versions
from shared.foundation.content import Subject, declare_store
from shared.foundation.roles import Role
from shared.foundation.versions import ABSENT, Expected
from shared.infra import redis as redis_client
from shared.infra.redis_versions import version_list
from shared.platform.resources import Resources

FAMILY = declare_store(
    "redis",
    "state",
    *(Subject.SESSION, Subject.USER, Subject.AGENT),
    reason="deleted with its session; scratch stores with the user or agent whose registry names them",
)
_PARTS = ("version", "keys", "order", "transcript", "labels", "values")


@dataclass(frozen=True, slots=True)
class RedisStateStore:
    """The temporary state store of one owner: see `protocol.StateStore`. `ttl` is in seconds.

    `around_use` is entered when the arguments were checked, before Redis is asked for anything.
    """

    redis: Redis
    prefix: str
    owner: Owner
    caps: Caps
    ttl: float
    name: str = "tmp"
    around_use: abc.Callable[[], AbstractAsyncContextManager[None]] = nullcontext

    async def set_key(  # noqa: D102  (see the protocol)
        self, key: str, value: Value, *, expected: Expected | None = None
    ) -> KeyEntry:
        rules.check_key(self, key)
        arguments = (version_list(expected), json_codec.dumps(value), self.caps.keys)
        succeeded, version = await self._run(scripts.SET_KEY, self._ttl_ms, key, *arguments)
        if not succeeded:
            raise versions.mismatch(rules.key_name(key), int(version))
        return KeyEntry(key, value, int(version))

    async def get_key(self, key: str) -> KeyEntry | None:  # noqa: D102
        rules.check_key(self, key)
        value, version = await self._run(scripts.GET_KEY, key)
        if value is None or version is None:
            return None
        return KeyEntry(key, json_codec.loads(value), _to_int(version))

    async def delete_key(self, key: str, *, expected: Expected | None = None) -> bool:  # noqa: D102
        rules.check_key(self, key)
        condition = version_list(expected)
        succeeded, version = await self._run(scripts.DELETE_KEY, self._ttl_ms, key, condition)
        if not succeeded:
            raise versions.mismatch(rules.key_name(key), int(version))
        return int(version) > 0

    async def list_keys(self, limit: int, after: int = 0) -> list[KeyEntry]:  # noqa: D102
        rules.check_operation(self, "kv")
        rows = await self._run(scripts.LIST_KEYS, limit, after)
        return [KeyEntry(key, json_codec.loads(value), _to_int(version)) for key, value, version in rows]

    async def append(self, draft: TranscriptDraft) -> TranscriptEntry:  # noqa: D102
        rules.check_operation(self, "transcript")
        entry = draft.validated()
        packed = orjson.dumps([entry.role, entry.content, dict(entry.metadata)]).decode()
        version = await self._run(scripts.APPEND, self._ttl_ms, packed, self.caps.entries)
        return TranscriptEntry(entry.role, entry.content, entry.metadata, version_to_time(int(version)))

    async def transcript(self, last: int) -> list[TranscriptEntry]:  # noqa: D102
        rules.check_operation(self, "transcript")
        return [_unpack_entry(packed) for packed in await self._run(scripts.TRANSCRIPT, last)]

    async def get_collection(self, label: str) -> CollectionSnapshot | None:  # noqa: D102
        rules.check_label(self, label)
        packed, value = await self._run(scripts.GET_COLLECTION, label)
        if packed is None or value is None:
            return None
        info = _unpack_info(label, packed)
        payload, encoded = orjson.loads(value)
        data = None if encoded is None else base64.b64decode(encoded)
        return CollectionSnapshot(info, collection_codec.decode_collection(info.type, payload, data))

    async def put_collection(  # noqa: D102
        self, label: str, collection: Collection, *, index: bool, expected: Expected | None = None
    ) -> CollectionInfo:
        rules.check_label(self, label)
        value, data = collection_codec.dump_parts(collection)
        info = (collection_codec.collection_type(collection), index, collection_codec.size_of(value, data))
        # The texts are joined without encoding: the value is JSON already, and base64 needs no escaping.
        encoded = "null" if data is None else f'"{base64.b64encode(data).decode()}"'
        packed = (orjson.dumps(info).decode(), f"[{value},{encoded}]")
        arguments = (version_list({ABSENT} if expected is None else expected), *packed)
        succeeded, version = await self._run(scripts.PUT_COLLECTION, self._ttl_ms, label, *arguments)
        if not succeeded:
            if expected is None:
                raise rules.unnamed_replacement(label, int(version))
            raise versions.mismatch(rules.collection_name(label), int(version))
        return CollectionInfo(label, *info, int(version))

    async def remove_collection(self, label: str, *, expected: Expected | None = None) -> bool:  # noqa: D102
        rules.check_label(self, label)
        condition = version_list(expected)
        succeeded, version = await self._run(scripts.REMOVE_COLLECTION, self._ttl_ms, label, condition)
        if not succeeded:
            raise versions.mismatch(rules.collection_name(label), int(version))
        return int(version) > 0

    async def list_collections(self) -> list[CollectionInfo]:  # noqa: D102
        rules.check_operation(self, "collections")
        rows = await self._run(scripts.LIST_COLLECTIONS)
        return [
            _unpack_info(label, packed) for label, packed in sorted(zip(rows[::2], rows[1::2], strict=True))
        ]

    async def drop(self) -> bool:  # noqa: D102
        return int(await self._run(scripts.DROP)) > 0

    async def expires_at(self) -> datetime | None:
        """Return when the store expires, or None if the store is empty."""
        remaining_ms = await self._run(scripts.EXPIRY)
        return None if remaining_ms < 0 else datetime.now(UTC) + timedelta(milliseconds=remaining_ms)

    @property
    def _ttl_ms(self) -> int:
        return max(1, int(self.ttl * 1000))

    async def _run(self, script: str, *arguments: str | int) -> Any:
        names = self._redis_keys()
        async with self.around_use():
            with redis_client.failures_as_unavailable():
                return await self.redis.eval(script, len(names), *names, *arguments)

    def _redis_keys(self) -> list[str]:
        owner = self.owner
        tag = f"{self.prefix}:{FAMILY}:{{{owner.tenant}:{owner.kind}:{owner.id}}}"
        return [f"{tag}:{part}" for part in _PARTS]


def open_redis_store(resources: Resources, owner: Owner, ttl_seconds: float | None = None) -> RedisStateStore:
    """Open the temporary state store of an owner. Without `ttl_seconds`, the setting `tmp_ttl` applies."""
    settings = resources.settings
    caps = Caps.from_settings(settings, owner.kind)
    return RedisStateStore(resources.redis, settings.prefix, owner, caps, ttl_seconds or settings.tmp_ttl)


async def drop_session_stores(resources: Resources, tenant: str, session_ids: Sequence[str]) -> None:
    """Delete the temporary state of deleted sessions. Durable state is deleted together with the sessions.

    Raises errors.Unavailable when Redis is unavailable.
    """
    for session_id in session_ids:
        await open_redis_store(resources, Owner(tenant, OwnerKind.SESSION, session_id)).drop()


def _to_int(score: str) -> int:
    return int(float(score))


def _unpack_entry(packed: str) -> TranscriptEntry:
    version, _, entry = packed.partition("\n")
    role, content, metadata = orjson.loads(entry)
    return TranscriptEntry(Role(role), content, metadata, version_to_time(int(version)))


def _unpack_info(label: str, packed: str) -> CollectionInfo:
    version, _, info = packed.partition("\n")
    collection_type, index, size = orjson.loads(info)
    return CollectionInfo(label, collection_type, index, size, int(version))
