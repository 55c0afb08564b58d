"""Store the files of documents: in Postgres, or large ones in S3-compatible storage if one is configured.

A name is given to one file only, so that a deletion never meets a new file of the same name. No transaction
is open while the S3-compatible storage is asked.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol

from shared.foundation import errors
from shared.infra.object_storage import ObjectMissing, ObjectStorage
from shared.infra.postgres import Postgres
from shared.infra.transaction import Transaction
from shared.memory.documents.files import queries
from shared.memory.documents.files.queries import StoredFile
from shared.platform.resources import Resources

_PART_BYTES = 1024 * 1024


class FileStore(Protocol):
    """Where files lie. Every method raises errors.Unavailable while a database can't serve."""

    async def put(self, tenant: str, name: str, content: Path) -> None:
        """Store a file under a name that no file had. It is durable when this returns.

        If this fails, `delete` removes what may be left. Raises errors.Conflict if a file has the name.
        """

    def open(self, tenant: str, name: str) -> AsyncIterator[bytes]:
        """Yield the bytes of a file in parts. Raises errors.NotFound if it was not stored, or is deleted."""

    async def delete(self, tenant: str, name: str) -> None:
        """Delete a file, if it exists, wholly or in part."""


def file_store(resources: Resources) -> FileStore:
    """Return the store that the settings name."""
    limit = resources.settings.document_postgres_bytes
    return _Files(resources.postgres, resources.object_storage, limit)


class _Files:
    def __init__(self, postgres: Postgres, storage: ObjectStorage | None, postgres_bytes: int) -> None:
        self._postgres = postgres
        self._storage = storage
        self._postgres_bytes = postgres_bytes

    async def put(self, tenant: str, name: str, content: Path) -> None:
        size_bytes = (await asyncio.to_thread(content.stat)).st_size
        is_large = self._storage is not None and size_bytes > self._postgres_bytes
        async with self._postgres.for_tenant(tenant) as tx:
            if not await queries.insert_file(tx, name, size_bytes, is_in_s3=is_large):
                raise errors.Conflict(f"there is a file {name} already")
            if not is_large:
                await _insert_parts(tx, name, content)
        if is_large:
            await self._put_object(tenant, name, content)

    async def _put_object(self, tenant: str, name: str, content: Path) -> None:
        await self._objects().put(_key(tenant, name), content)
        if await self._find(tenant, name) is None:  # it was deleted meanwhile: no row says what is left
            await self._objects().delete(_key(tenant, name))
            raise _not_found(name)

    async def open(self, tenant: str, name: str) -> AsyncIterator[bytes]:
        file = await self._find(tenant, name)
        if file is None:
            raise _not_found(name)
        parts = self._objects().read(_key(tenant, name)) if file.is_in_s3 else self._parts(tenant, name)
        remaining_bytes = file.size_bytes
        try:
            async for part in parts:
                remaining_bytes -= len(part)
                yield part
        except ObjectMissing:
            raise _not_found(name) from None
        if remaining_bytes:  # it was deleted while it was read
            raise _not_found(name)

    async def delete(self, tenant: str, name: str) -> None:
        file = await self._find(tenant, name)
        if file is None:
            return
        if file.is_in_s3:
            await self._objects().delete(_key(tenant, name))
        async with self._postgres.for_tenant(tenant) as tx:
            await queries.delete_file(tx, name)

    async def _find(self, tenant: str, name: str) -> StoredFile | None:
        async with self._postgres.for_tenant(tenant) as tx:
            return await queries.find_file(tx, name)

    async def _parts(self, tenant: str, name: str) -> AsyncIterator[bytes]:
        position = 0
        while True:
            async with self._postgres.for_tenant(tenant) as tx:
                part = await queries.find_part(tx, name, position)
            if part is None:
                return
            yield part
            position += 1

    def _objects(self) -> ObjectStorage:
        if self._storage is None:
            raise errors.Unavailable("s3", "LOCI_S3_BUCKET is not set, but files were stored there")
        return self._storage


async def _insert_parts(tx: Transaction, name: str, content: Path) -> None:
    position = 0
    with await asyncio.to_thread(content.open, "rb") as file:
        while part := await asyncio.to_thread(file.read, _PART_BYTES):
            await queries.insert_part(tx, name, position, part)
            position += 1


def _key(tenant: str, name: str) -> str:
    return f"{tenant}/{name}"


def _not_found(name: str) -> errors.NotFound:
    return errors.NotFound(f"the file {name} does not exist")
