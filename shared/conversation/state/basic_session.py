"""`basic_session`: the durable state store in Postgres. It works within the transaction it was opened in."""

from dataclasses import dataclass

import orjson
from sqlalchemy import RowMapping

from shared.conversation.state import queries, rules
from shared.conversation.state.types import (
    Caps,
    CollectionInfo,
    CollectionSnapshot,
    KeyEntry,
    Owner,
    TranscriptDraft,
    TranscriptEntry,
    version_to_time,
)
from shared.conversation.values import collection_codec, json_codec
from shared.conversation.values.collection import Collection
from shared.conversation.values.value import Value
from shared.foundation import versions
from shared.foundation.roles import Role
from shared.foundation.versions import Expected
from shared.infra.transaction import Transaction


@dataclass(frozen=True, slots=True)
class PostgresStateStore:
    """The durable state store of one owner: see `protocol.StateStore`.

    A transaction that writes to a session's store must hold the lock of the session's row. Without
    the lock, the session could be deleted during the write.
    """

    tx: Transaction
    owner: Owner
    caps: Caps
    name: str = "basic_session"

    async def set_key(  # noqa: D102  (see the protocol)
        self, key: str, value: Value, *, expected: Expected | None = None
    ) -> KeyEntry:
        rules.check_key(self, key)
        version = await queries.next_version(self.tx, self.owner)
        await self._check_key_version(key, expected)
        await queries.set_key(self.tx, self.owner, key, json_codec.dumps(value), version)
        await queries.evict_keys(self.tx, self.owner, self.caps.keys)
        return KeyEntry(key, value, version)

    async def get_key(self, key: str) -> KeyEntry | None:  # noqa: D102
        rules.check_key(self, key)
        row = await queries.get_key(self.tx, self.owner, key)
        return None if row is None else _key_entry_from_row(row)

    async def delete_key(self, key: str, *, expected: Expected | None = None) -> bool:  # noqa: D102
        rules.check_key(self, key)
        await self._check_key_version(key, expected)
        return await queries.delete_key(self.tx, self.owner, key)

    async def _check_key_version(self, key: str, expected: Expected | None) -> None:
        if expected is not None:
            stored_version = await queries.lock_key(self.tx, self.owner, key)
            versions.check(rules.key_name(key), stored_version, expected)

    async def list_keys(self, limit: int, after: int = 0) -> list[KeyEntry]:  # noqa: D102
        rules.check_operation(self, "kv")
        rows = await queries.list_keys(self.tx, self.owner, limit, after)
        return [_key_entry_from_row(row) for row in rows]

    async def append(self, draft: TranscriptDraft) -> TranscriptEntry:  # noqa: D102
        rules.check_operation(self, "transcript")
        entry = draft.validated()
        version = await queries.next_version(self.tx, self.owner)
        await queries.add_entry(self.tx, self.owner, entry, version)
        await queries.evict_entries(self.tx, self.owner, self.caps.entries)
        return TranscriptEntry(entry.role, entry.content, entry.metadata, version_to_time(version))

    async def transcript(self, last: int) -> list[TranscriptEntry]:  # noqa: D102
        rules.check_operation(self, "transcript")
        rows = await queries.last_entries(self.tx, self.owner, last)
        return [
            TranscriptEntry(
                Role(row["role"]), row["content"], row["metadata"], version_to_time(row["version"])
            )
            for row in rows
        ]

    async def get_collection(self, label: str) -> CollectionSnapshot | None:  # noqa: D102
        rules.check_label(self, label)
        row = await queries.get_collection(self.tx, self.owner, label)
        if row is None:
            return None
        collection = collection_codec.decode_collection(row["type"], orjson.loads(row["value"]), row["data"])
        return CollectionSnapshot(_info_from_row(row), collection)

    async def put_collection(  # noqa: D102
        self, label: str, collection: Collection, *, index: bool, expected: Expected | None = None
    ) -> CollectionInfo:
        rules.check_label(self, label)
        version = await queries.next_version(self.tx, self.owner)
        stored_version = await queries.version_of(self.tx, self.owner, label)
        rules.check_replacement(label, stored_version, expected)
        value, data = collection_codec.dump_parts(collection)
        size = collection_codec.size_of(value, data)
        info = CollectionInfo(label, collection_codec.collection_type(collection), index, size, version)
        columns = {"type": info.type, "index": index, "size_bytes": size, "version": version}
        columns |= {"value": value, "data": data}
        await queries.put_collection(self.tx, self.owner, label, columns)
        return info

    async def remove_collection(self, label: str, *, expected: Expected | None = None) -> bool:  # noqa: D102
        rules.check_label(self, label)
        # Taking a version creates the state store, so a collection that doesn't exist must take none.
        if await queries.version_of(self.tx, self.owner, label):
            await queries.next_version(self.tx, self.owner)
        stored_version = await queries.version_of(self.tx, self.owner, label)
        versions.check(rules.collection_name(label), stored_version, expected)
        return await queries.remove_collection(self.tx, self.owner, label)

    async def list_collections(self) -> list[CollectionInfo]:  # noqa: D102
        rules.check_operation(self, "collections")
        return [_info_from_row(row) for row in await queries.list_collections(self.tx, self.owner)]

    async def drop(self) -> bool:  # noqa: D102
        return await queries.drop(self.tx, self.owner)


def _key_entry_from_row(row: RowMapping) -> KeyEntry:
    return KeyEntry(row["key"], json_codec.loads(row["value"]), row["version"])


def _info_from_row(row: RowMapping) -> CollectionInfo:
    return CollectionInfo(row["label"], row["type"], row["index"], row["size_bytes"], row["version"])
