"""Both servers of Qdrant's protocol, each started once, and an empty collection for every test."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import pytest
import pytest_asyncio
from qdrant_client import AsyncQdrantClient, models

from services.local.qdrant import Qdrant
from tests.memory_folder import memory_folder
from tests.stores.qdrant_binary import QdrantBinary, Unobtainable

LOCAL, BINARY = "local process", "server binary"
SIZE = 8


class Server(Protocol):
    """A server that tests may start, stop and kill."""

    @property
    def url(self) -> str: ...
    @property
    def pid(self) -> int | None: ...
    def start(self) -> str: ...
    def stop(self, within: float = 10.0) -> None: ...
    def kill(self) -> None: ...


_SERVERS: dict[str, Callable[[Path], Server]] = {LOCAL: Qdrant, BINARY: QdrantBinary}


def start_server(kind: str, folder: Path) -> Server:
    """Return a running server; skip the test if the server cannot be obtained."""
    server = _SERVERS[kind](folder)
    try:
        server.start()
    except Unobtainable as error:
        pytest.skip(f"no real Qdrant server is available: {error}")
    return server


class Servers:
    """The servers that all tests share. Each is started when a test first needs it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, Server] = {}

    def url(self, kind: str) -> str:
        """Return the address of the server of this kind."""
        if kind not in self._running:
            self._running[kind] = start_server(kind, self._folder / kind.replace(" ", "-"))
        return self._running[kind].url

    def kill(self) -> None:
        """Kill the servers; their data is discarded."""
        for server in self._running.values():
            server.kill()


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """Return the shared servers."""
    with memory_folder() as folder:
        servers = Servers(folder)
        yield servers
        servers.kill()


@pytest.fixture(scope="session", params=[LOCAL, BINARY])
def kind(request: pytest.FixtureRequest) -> str:
    """Return the name of the server that the test runs against."""
    return str(request.param)


@pytest.fixture(scope="session")
def qdrant_url(kind: str, servers: Servers) -> str:
    """Return the address of a server; a test with this fixture runs against both kinds."""
    return servers.url(kind)


@pytest.fixture(scope="session")
def local_url(servers: Servers) -> str:
    """Return the address of the local process, for what only this server does."""
    return servers.url(LOCAL)


@pytest.fixture
def own_server(kind: str, tmp_path: Path) -> Iterator[Server]:
    """Return a server of either kind that the test may kill."""
    server = start_server(kind, tmp_path)
    yield server
    server.kill()


@pytest.fixture
def own_local_server(tmp_path: Path) -> Iterator[Server]:
    """Return a local process that the test may kill."""
    server = start_server(LOCAL, tmp_path)
    yield server
    server.kill()


@pytest_asyncio.fixture
async def client(qdrant_url: str) -> AsyncIterator[AsyncQdrantClient]:
    """Return a client of the shared server."""
    async with connected(qdrant_url) as client:
        yield client


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[AsyncQdrantClient]:
    """Open a client. The version check is off, because the real server is older than the client expects."""
    # Without `verify=False` a client reads all certificate authorities, for 30 ms.
    client = AsyncQdrantClient(url=url, check_compatibility=False, timeout=20, verify=False)
    try:
        yield client
    finally:
        await client.close()


@pytest_asyncio.fixture
async def collection(client: AsyncQdrantClient, common: str) -> AsyncIterator[str]:
    """Return the name of an empty collection with the vectors and indexes that Loci uses."""
    yield common
    await client.delete(common, models.FilterSelector(filter=models.Filter()))


@pytest.fixture(scope="session")
def common(qdrant_url: str) -> Iterator[str]:
    """Return a collection that all tests of a server share; creating one takes the real server a second.

    It is deleted when tests of the other kind of server follow: these tests may come again.
    """
    name = "common"

    async def create_common() -> None:
        async with connected(qdrant_url) as client:
            await create(client, name)

    async def delete_common() -> None:
        async with connected(qdrant_url) as client:
            await client.delete_collection(name)

    asyncio.run(create_common())
    yield name
    asyncio.run(delete_common())


@pytest_asyncio.fixture
async def own_collection(client: AsyncQdrantClient) -> AsyncIterator[str]:
    """Return the name of a collection for one test, in which nothing was ever deleted."""
    name = f"c-{uuid4()}"
    await create(client, name)
    yield name
    await client.delete_collection(name)


async def create(client: AsyncQdrantClient, name: str, *, dense: bool = True) -> None:
    """Create a collection with the vectors and payload indexes that Loci uses."""
    await client.create_collection(
        name,
        vectors_config={"dense": models.VectorParams(size=SIZE, distance=models.Distance.COSINE)}
        if dense
        else {},
        sparse_vectors_config={"bm25": models.SparseVectorParams(modifier=models.Modifier.IDF)},
    )
    tenant = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
    await client.create_payload_index(name, "tenant", tenant)
    for field, kind in {"tags": "keyword", "at": "datetime", "n": "integer", "weight": "float"}.items():
        await client.create_payload_index(name, field, models.PayloadSchemaType(kind))


def point_id(number: int) -> str:
    """Return the id of the point with a number."""
    return f"00000000-0000-0000-0000-{number:012d}"


def numbers(points: list[models.ScoredPoint] | list[models.Record]) -> list[int]:
    """Return the numbers of points."""
    return [int(str(point.id).rpartition("-")[2]) for point in points]


def unit(axis: int, *, lean: float = 0.0) -> list[float]:
    """Return a vector along an axis, with a component `lean` along the next one."""
    vector = [0.0] * SIZE
    vector[axis], vector[(axis + 1) % SIZE] = 1.0, lean
    return vector


def words(*terms: int) -> models.SparseVector:
    """Return the sparse vector of a text that has each of these terms once."""
    return models.SparseVector(indices=list(terms), values=[1.0] * len(terms))
