"""Files are stored in Postgres or in S3-compatible storage, in the same way, and nothing of them is left."""

import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from shared.foundation import config, errors
from shared.infra.object_storage import ObjectStorage
from shared.memory.documents.files import queries
from shared.memory.documents.files.store import FileStore, file_store
from shared.platform.resources import Resources, open_resources
from tests.integration.document_files.s3_server import S3Server, s3_server
from tests.memory_folder import memory_folder

_LIMIT = 1000
_LARGE = 2_500_000
MakeSettings = Callable[..., config.Settings]


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with memory_folder() as root, s3_server(root / "s3") as running:
        yield running


@pytest.fixture(scope="module")
async def with_s3(make_settings: MakeSettings, server: S3Server) -> AsyncIterator[Resources]:
    settings = make_settings(**server.settings(document_postgres_bytes=_LIMIT))
    async with open_resources(settings) as resources:
        yield resources


@pytest.fixture(scope="module")
async def without_s3(make_settings: MakeSettings) -> AsyncIterator[Resources]:
    async with open_resources(make_settings(document_postgres_bytes=_LIMIT)) as resources:
        yield resources


@pytest.fixture(params=["s3", "postgres"])
def store(request: pytest.FixtureRequest, with_s3: Resources, without_s3: Resources) -> FileStore:
    """The store with and without S3-compatible storage."""
    return file_store(with_s3 if request.param == "s3" else without_s3)


def _upload(folder: Path, size_bytes: int) -> tuple[Path, bytes]:
    content = os.urandom(size_bytes)
    path = folder / "upload"
    path.write_bytes(content)
    return path, content


async def _read(store: FileStore, tenant: str, name: str) -> bytes:
    return b"".join([part async for part in store.open(tenant, name)])


@pytest.mark.parametrize("size_bytes", [0, _LIMIT, _LARGE])
async def test_a_file_is_read_as_it_was_stored_until_it_is_deleted(
    store: FileStore, size_bytes: int, tenant: str, tmp_path: Path
) -> None:
    path, content = _upload(tmp_path, size_bytes)
    await store.put(tenant, "a", path)
    assert await _read(store, tenant, "a") == content
    await store.delete(tenant, "a")
    await store.delete(tenant, "a")
    with pytest.raises(errors.NotFound):
        await _read(store, tenant, "a")


async def test_large_files_lie_in_s3_and_small_ones_in_postgres(
    with_s3: Resources, server: S3Server, tenant: str, tmp_path: Path
) -> None:
    store = file_store(with_s3)
    await store.put(tenant, "small", _upload(tmp_path, _LIMIT)[0])
    await store.put(tenant, "large", _upload(tmp_path, _LIMIT + 1)[0])
    assert server.objects_of(tenant) == {"large"}
    await store.delete(tenant, "large")
    assert server.objects_of(tenant) == set()


@pytest.mark.parametrize("size_bytes", [_LIMIT, _LARGE])
async def test_another_tenant_has_no_such_file(
    with_s3: Resources, tenant: str, tmp_path: Path, size_bytes: int
) -> None:
    store, other = file_store(with_s3), f"{tenant}-other"
    path, content = _upload(tmp_path, size_bytes)
    await store.put(tenant, "a", path)
    await store.delete(other, "a")
    with pytest.raises(errors.NotFound):
        await _read(store, other, "a")
    assert await _read(store, tenant, "a") == content


@pytest.mark.parametrize("size_bytes", [_LIMIT, _LARGE])
async def test_a_name_that_a_file_has_is_given_to_no_other(
    with_s3: Resources, tenant: str, tmp_path: Path, size_bytes: int
) -> None:
    store = file_store(with_s3)
    path, content = _upload(tmp_path, size_bytes)
    await store.put(tenant, "a", path)
    with pytest.raises(errors.Conflict):
        await store.put(tenant, "a", _upload(tmp_path, size_bytes)[0])
    assert await _read(store, tenant, "a") == content


async def test_an_upload_that_failed_leaves_a_row_that_says_what_is_to_be_deleted(
    make_settings: MakeSettings,
    unused_url: str,
    server: S3Server,
    with_s3: Resources,
    tenant: str,
    tmp_path: Path,
) -> None:
    away = make_settings(**server.settings(s3_endpoint=unused_url, s3_timeout=1, document_postgres_bytes=0))
    path, _ = _upload(tmp_path, _LARGE)
    async with open_resources(away) as resources:
        with pytest.raises(errors.Unavailable, match="s3"):
            await file_store(resources).put(tenant, "a", path)
        with pytest.raises(errors.Unavailable, match="s3"):
            await file_store(resources).delete(tenant, "a")
    store = file_store(with_s3)
    with pytest.raises(errors.NotFound):
        await _read(store, tenant, "a")
    await store.delete(tenant, "a")
    async with with_s3.postgres.for_tenant(tenant) as tx:
        assert await queries.find_file(tx, "a") is None


async def test_a_wrong_key_is_unavailable_and_the_error_has_no_names(
    make_settings: MakeSettings, server: S3Server, tenant: str, tmp_path: Path
) -> None:
    settings = make_settings(**server.settings(s3_secret_access_key="wrong", document_postgres_bytes=0))
    async with open_resources(settings) as resources:
        with pytest.raises(errors.Unavailable) as caught:
            await file_store(resources).put(tenant, "a", _upload(tmp_path, 10)[0])
    assert tenant not in str(caught.value)


async def test_a_bucket_that_does_not_exist_is_found_by_the_check(
    make_settings: MakeSettings, server: S3Server, with_s3: Resources
) -> None:
    assert with_s3.object_storage is not None
    await with_s3.object_storage.check()
    async with open_resources(make_settings(**server.settings(s3_bucket="missing"))) as resources:
        assert resources.object_storage is not None
        with pytest.raises(errors.Unavailable, match="s3"):
            await resources.object_storage.check()


async def test_a_file_that_is_deleted_while_it_is_uploaded_leaves_no_object(
    with_s3: Resources, server: S3Server, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, put = file_store(with_s3), ObjectStorage.put

    async def put_after_deletion(storage: ObjectStorage, key: str, content: Path) -> None:
        await store.delete(tenant, "a")
        await put(storage, key, content)

    monkeypatch.setattr(ObjectStorage, "put", put_after_deletion)
    with pytest.raises(errors.NotFound):
        await store.put(tenant, "a", _upload(tmp_path, _LARGE)[0])
    assert server.objects_of(tenant) == set()


async def test_a_file_that_is_deleted_while_it_is_read_is_not_read_in_part(
    without_s3: Resources, tenant: str, tmp_path: Path
) -> None:
    store = file_store(without_s3)
    await store.put(tenant, "a", _upload(tmp_path, _LARGE)[0])
    parts = store.open(tenant, "a")
    assert await anext(parts)
    await store.delete(tenant, "a")
    with pytest.raises(errors.NotFound):
        _ = [part async for part in parts]


async def test_files_in_s3_are_unavailable_if_the_settings_name_no_bucket_any_more(
    with_s3: Resources, without_s3: Resources, tenant: str, tmp_path: Path
) -> None:
    await file_store(with_s3).put(tenant, "a", _upload(tmp_path, _LARGE)[0])
    with pytest.raises(errors.Unavailable, match="LOCI_S3_BUCKET"):
        await _read(file_store(without_s3), tenant, "a")
