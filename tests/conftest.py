"""Real stores for every test, started once on free ports; a tenant of its own for each test.

Postgres, Valkey and the local vector store run for the length of the session, without fsync
(only processes die here, not machines). Tests don't share a tenant, so nothing has to be
cleaned between them.
"""

import asyncio
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
from services.local.postgres import Postgres
from services.local.qdrant import Qdrant
from services.local.redis import Redis
from shared.foundation import config
from shared.platform.auth import api_keys
from shared.platform.resources import Resources
from tests.standins.models import ModelServer

# These start processes and watch their clocks: two of them at once would disturb each other.
_ONE_BY_ONE = ("faults", "journey", "deploy", "telemetry", "integration/local")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """For `-n 2 --dist loadgroup`: tests that start processes are one group, of the others each file is."""
    if config.getoption("dist", "no") != "loadgroup":
        return
    groups = {item: _group(item.path.relative_to(Path(__file__).parent).as_posix()) for item in items}
    for item, group in groups.items():
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: groups[item] != _ONE_BY_ONE[0])  # the longest first


def _group(path: str) -> str:
    return _ONE_BY_ONE[0] if path.startswith(tuple(f"{folder}/" for folder in _ONE_BY_ONE)) else path


@dataclass(frozen=True)
class Stores:
    """The addresses of the stores of this run."""

    postgres_url: str
    redis_url: str
    qdrant_url: str

    def database(self) -> str:
        """Make a database of its own, with the schema and no rows, and return its address."""
        name = f"test_{uuid4().hex[:12]}"
        run_apart(_copy_database(self.postgres_url, name))
        return f"{self.postgres_url.rsplit('/', 1)[0]}/{name}"


def run_apart(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end on a loop of its own, also where a loop is running already."""
    thread = threading.Thread(target=asyncio.run, args=(work,))
    thread.start()
    thread.join()


async def _copy_database(template_url: str, name: str) -> None:
    """Copy the migrated database, which nothing else ever connects to."""
    server = await asyncpg.connect(f"{template_url.rsplit('/', 1)[0]}/postgres")
    try:
        await server.execute(f"CREATE DATABASE {name} TEMPLATE loci")
    finally:
        await server.close()


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
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
    """Bring a database's schema up to date, as `loci migrate` does."""
    env = {**os.environ, "LOCI_POSTGRES_URL": postgres_url}
    subprocess.run([sys.executable, "-m", "services.cli", "migrate"], env=env, check=True)


@pytest.fixture(scope="session")
def make_settings(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., config.Settings]:
    """Return a function that makes settings for these stores, with what a test wants otherwise.

    `apart=True` gives a database and collections of its own, for tests of the index's
    generations: those belong to a database, not to a tenant.
    """
    common = stores.database()

    def make(*, apart: bool = False, **changes: Any) -> config.Settings:
        own = {"prefix": f"t{uuid4().hex[:10]}", "postgres_url": stores.database()} if apart else {}
        given = {"data_dir": tmp_path_factory.mktemp("data"), "postgres_url": common, **own, **changes}
        return config.load(redis_url=stores.redis_url, qdrant_url=stores.qdrant_url, **given)

    return make


@dataclass(frozen=True)
class Gateway:
    """A gateway in this process: an HTTP client bound to a key, and the resources behind it."""

    client: httpx.AsyncClient
    resources: Resources
    tenant: str

    async def another(self, tenant: str | None = None, **bound: Any) -> httpx.AsyncClient:
        """Return a client with a new key, of this tenant or another, with all rights unless told."""
        bound.setdefault("rights", api_keys.RIGHTS)
        key = await api_keys.issue(self.resources.postgres, tenant or self.tenant, **bound)
        return httpx.AsyncClient(
            transport=self.client._transport,
            base_url="http://gateway",
            headers={"authorization": f"Bearer {key}"},
        )


@asynccontextmanager
async def serving(settings: config.Settings, tenant: str) -> AsyncIterator[Gateway]:
    """Serve a gateway in this process, with a key of all rights for one tenant."""
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
    """A gateway without any model: keyword search, raw entries."""
    async with serving(make_settings(), tenant) as served:
        yield served


@pytest.fixture
def models() -> Iterator[ModelServer]:
    """A stand-in for the model endpoints, which a test can tell to fail."""
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).parent.parent
