"""Start real databases once for all tests, and give each test a tenant of its own.

Postgres, Valkey and the local Qdrant server run on free ports until the session ends. They run without
fsync, because tests kill processes but not the machine. Tests share no tenant, so nothing has to be
cleaned up between them.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import httpx
import pytest

from services.gateway.app import create_app
from services.local import ports
from services.local.postgres import Postgres
from services.local.qdrant import Qdrant
from services.local.redis import Redis
from shared.foundation import config
from shared.platform.auth import api_keys
from shared.platform.resources import Resources
from tests import state
from tests.journey.agent import Agent
from tests.standins.models import ModelServer

# These tests start processes and measure times, so two of them at once would disturb each other.
_SERIAL_FOLDERS = ("faults", "journey", "deploy", "telemetry", "integration/local")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put tests that start processes into one group of `--dist loadgroup`, and other files into one each."""
    if config.getoption("dist", "no") != "loadgroup":
        return
    groups = {item: _group(item.path.relative_to(Path(__file__).parent).as_posix()) for item in items}
    for item, group in groups.items():
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: groups[item] != _SERIAL_FOLDERS[0])  # the longest first


def _group(path: str) -> str:
    return _SERIAL_FOLDERS[0] if path.startswith(tuple(f"{folder}/" for folder in _SERIAL_FOLDERS)) else path


@dataclass(frozen=True)
class Stores:
    """The addresses of the databases of this run."""

    postgres_url: str
    redis_url: str
    qdrant_url: str

    def create_database(self) -> str:
        """Create a Postgres database with the schema and no rows, and return its address."""
        name = f"test_{uuid4().hex[:12]}"
        run_in_thread(_copy_database(self.postgres_url, name))
        return f"{self.postgres_url.rsplit('/', 1)[0]}/{name}"


def run_in_thread(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end in another thread, because this one may have a running event loop."""
    thread = threading.Thread(target=asyncio.run, args=(work,))
    thread.start()
    thread.join()


async def _copy_database(template_url: str, name: str) -> None:
    """Copy the migrated database. Nothing else may be connected to it, so no test uses it directly."""
    server = await asyncpg.connect(f"{template_url.rsplit('/', 1)[0]}/postgres")
    try:
        await server.execute(f"CREATE DATABASE {name} TEMPLATE loci")
    finally:
        await server.close()


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    if given := os.environ.get("TEST_STORES"):  # `make mutants` starts them once for many runs
        yield Stores(**json.loads(given))
        return
    root = tmp_path_factory.mktemp("stores")
    postgres = Postgres(root / "postgres", durable=False)
    redis, qdrant = Redis(root / "redis"), Qdrant(root / "qdrant")
    try:
        addresses = Stores(postgres.start(), redis.start(), qdrant.start())
        migrate(addresses.postgres_url)
        yield addresses
    finally:
        for store in (qdrant, redis, postgres):
            store.stop()


def migrate(postgres_url: str) -> None:
    """Migrate the schema of a database with `loci migrate`."""
    env = {**os.environ, "LOCI_POSTGRES_URL": postgres_url}
    subprocess.run([sys.executable, "-m", "services.cli", "migrate"], env=env, check=True)


@pytest.fixture(scope="session")
def make_settings(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., config.Settings]:
    """Return a function that returns settings for these databases, with the changes of a test.

    `apart=True` gives the test a Postgres database and collections of its own. Tests that create index
    generations or claim jobs need it, because those belong to a database and not to a tenant.
    """
    shared_url = stores.create_database()

    def make(*, apart: bool = False, **changes: Any) -> config.Settings:
        separate = (
            {"prefix": f"t{uuid4().hex[:10]}", "postgres_url": stores.create_database()} if apart else {}
        )
        common = {"data_dir": tmp_path_factory.mktemp("data"), "postgres_url": shared_url}
        values = {**common, **separate, **changes}
        return config.load(redis_url=stores.redis_url, qdrant_url=stores.qdrant_url, **values)

    return make


@dataclass(frozen=True)
class Gateway:
    """A gateway in this process: an HTTP client with a key, and the gateway's resources."""

    client: httpx.AsyncClient
    resources: Resources
    tenant: str

    async def new_client(self, tenant: str | None = None, **key_options: Any) -> httpx.AsyncClient:
        """Return a client with a new key of this or another tenant, by default with all rights."""
        key_options.setdefault("rights", api_keys.RIGHTS)
        key = await api_keys.issue(self.resources.postgres, tenant or self.tenant, **key_options)
        return httpx.AsyncClient(
            transport=self.client._transport,
            base_url="http://gateway",
            headers={"authorization": f"Bearer {key}"},
        )


@asynccontextmanager
async def running_gateway(settings: config.Settings, tenant: str) -> AsyncIterator[Gateway]:
    """Run a gateway in this process, and issue a key with all rights for a tenant."""
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        resources: Resources = app.state.resources
        key = await api_keys.issue(resources.postgres, tenant, rights=api_keys.RIGHTS)
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app),
            base_url="http://gateway",
            headers={"authorization": f"Bearer {key}"},
            timeout=30,
        ) as client:
            yield Gateway(client, resources, tenant)


@pytest.fixture
def tenant() -> str:
    return f"t-{uuid4().hex[:12]}"


@pytest.fixture
async def gateway(make_settings: Callable[..., config.Settings], tenant: str) -> AsyncIterator[Gateway]:
    """A gateway without any model: keyword search and raw memories."""
    async with running_gateway(make_settings(), tenant) as gateway:
        yield gateway


@pytest.fixture
def models() -> Iterator[ModelServer]:
    """A stand-in for the model endpoints, which a test can program to fail."""
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="module")
def module_models() -> Iterator[ModelServer]:
    """A stand-in for the model endpoints that lasts for a module."""
    with ModelServer() as server:
        yield server


@pytest.fixture
def agent(gateway: Gateway) -> Agent:
    """An agent whose key has all rights in a tenant of its own."""
    return Agent(gateway.client, gateway.tenant)


@pytest.fixture
async def inspector(gateway: Gateway) -> AsyncIterator[state.StateInspector]:
    """An inspector that reads everything the databases contain."""
    async with state.watching(gateway.resources.settings) as state_inspector:
        yield state_inspector


@pytest.fixture
def unused_url() -> str:
    """A URL of this machine that refuses connections."""
    return f"http://127.0.0.1:{ports.pick_free_port()}"


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).parent.parent
