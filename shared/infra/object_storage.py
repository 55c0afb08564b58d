"""Connect to an S3-compatible storage, which holds the large files of documents if one is configured.

An object is written with one request, so it is stored whole or not at all. The parts of an upload in several
requests that was interrupted would stay in the bucket, out of the reach of every deletion.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from shared.foundation import errors
from shared.foundation.document_settings import DocumentSettings

if TYPE_CHECKING:
    from obstore.store import S3Config, S3Store

_READ_BYTES = 1024 * 1024
_MAX_RETRIES = 2
_NO_KEY = "no-tenant"


class ObjectMissing(errors.LociError):
    """The storage has no object with this key."""


class ObjectStorage:
    """A bucket of an S3-compatible storage, with the errors of Loci."""

    def __init__(self, bucket: str, settings: DocumentSettings) -> None:
        self._bucket = bucket
        self._settings = settings
        self._store: S3Store | None = None

    async def put(self, key: str, content: Path) -> None:
        """Store a file. It replaces an object with this key."""
        with _failures_as_unavailable():
            await self._opened().put_async(key, content, use_multipart=False)

    async def read(self, key: str) -> AsyncIterator[bytes]:
        """Yield the bytes of an object in parts. Raises ObjectMissing if there is none."""
        with _failures_as_unavailable():
            try:
                result = await self._opened().get_async(key)
            except FileNotFoundError:
                raise ObjectMissing("the storage has no such object") from None
            async for part in result.stream(min_chunk_size=_READ_BYTES):
                yield bytes(part)

    async def delete(self, key: str) -> None:
        """Delete an object, if it exists."""
        with _failures_as_unavailable():
            try:
                await self._opened().delete_async(key)
            except FileNotFoundError:  # so some servers tell a missing object, and all a missing bucket
                await self.check()

    async def check(self) -> None:
        """Raise errors.Unavailable if the bucket can't be listed with the key of the settings."""
        with _failures_as_unavailable():
            await self._opened().list_with_delimiter_async(_NO_KEY)

    def _opened(self) -> "S3Store":
        """Return the client. Most processes store no file, so it is imported when the first one is stored."""
        if self._store is None:
            from obstore.store import S3Store

            limit = timedelta(seconds=self._settings.s3_timeout)
            is_plain = (self._settings.s3_endpoint or "").startswith("http:")
            self._store = S3Store(
                self._bucket,
                config=_config(self._settings),
                client_options={"timeout": limit, "allow_http": is_plain},
                retry_config={"max_retries": _MAX_RETRIES, "retry_timeout": limit},
            )
        return self._store


def open_object_storage(settings: DocumentSettings) -> ObjectStorage | None:
    """Return the client of the storage that the settings name, if they name one. It has nothing to close."""
    return ObjectStorage(settings.s3_bucket, settings) if settings.s3_bucket else None


def _config(settings: DocumentSettings) -> "S3Config":
    config: S3Config = {"region": settings.s3_region}
    if settings.s3_endpoint:
        config["endpoint"] = settings.s3_endpoint
    if settings.s3_access_key_id and settings.s3_secret_access_key:
        config["access_key_id"] = settings.s3_access_key_id.get_secret_value()
        config["secret_access_key"] = settings.s3_secret_access_key.get_secret_value()
    return config


@contextmanager
def _failures_as_unavailable() -> Iterator[None]:
    from obstore.exceptions import BaseError

    try:
        yield
    except (BaseError, OSError) as error:  # the messages name objects, and so tenants
        raise errors.Unavailable("s3", type(error).__name__) from None
