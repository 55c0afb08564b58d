"""Start real databases once for all tests, and give each test a tenant of its own.

Postgres, Valkey and the local Qdrant server run on free ports until the session ends. They run without
fsync, because tests kill processes but not the machine. Tests share no tenant, so nothing has to be
cleaned up between them.
"""

import asyncio
import gc
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
import uvloop
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from xdist.scheduler import LoadScopeScheduling

from services.gateway.app import create_app
from services.local import ports
from services.local.postgres import Postgres
from services.local.qdrant import Qdrant
from services.local.redis import Redis
from shared.foundation import config
from shared.platform.auth import api_keys
from shared.platform.resources import Resources
from tests import shared_pool, state
from tests.agent import Agent
from tests.databases import copy_database, drop_database, empty_tables, run_in_thread, shorten_logins
from tests.long_form import IS_LONG
from tests.memory_folder import memory_folder
from tests.process_pool import ProcessPool
from tests.standins.models import ModelServer
from tests.trusted_judges import trust_judge

# The loop that serves in production: it saves a tenth of a test that makes requests.
asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())

# A machine that is shared, and a run that measures coverage, may pause any test for seconds.
# Examples are the same in every run, so that none fails by chance; the long forms draw new ones.
hypothesis_settings.register_profile(
    "loci",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not IS_LONG,
    database=None,
)
hypothesis_settings.load_profile("loci")

# The first start processes and measure times. Two of them at once would disturb each other, so one worker
# runs this whole chain, while the others run what needs no process. The second read the same parsed source.
_CHAINS = (("faults", "journey", "deploy", "telemetry", "integration/local"), ("architecture",))

# They send by every route and with every key what other tests send too, run the product in other processes,
# or read the source: measured, they would take twice their time, and cover hardly more.
_NOT_MEASURED = ("architecture/", "badinput/", "faults/", "isolation/", "journey/", "unit/mutants/")


class _FilesTogether(LoadScopeScheduling):  # type: ignore[misc]  # the package has no types
    """Gives a worker all tests of a file at once, and one worker all tests of a chain."""

    def _split_scope(self, nodeid: str) -> str:
        return _group(nodeid.partition("::")[0].removeprefix(f"{Path(__file__).parent.name}/"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of `make test-fast`."""
    parser.addoption("--without-processes", action="store_true", help="leave out tests that start processes")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the tests that start processes if `--without-processes` is given."""
    place = _place(f"{_path_below_tests(collection_path)}/")
    return True if config.getoption("--without-processes") and place == 0 else None


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _FilesTogether:
    """Return how tests are divided among workers."""
    return _FilesTogether(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the chains: they take longest, and only one worker runs each. Choose what is measured."""
    items.sort(key=lambda item: _place(_path_below_tests(item.path)))
    for item in items:
        if _path_below_tests(item.path).startswith(_NOT_MEASURED):
            item.add_marker(pytest.mark.no_cover)


def pytest_collection_finish() -> None:
    """Keep the ten thousand collected tests out of every later search for garbage."""
    gc.collect()
    gc.freeze()


def _path_below_tests(path: Path) -> str:
    return path.relative_to(Path(__file__).parent).as_posix()


def _group(path: str) -> str:
    place = _place(path)
    return path if place == len(_CHAINS) else _CHAINS[place][0]


def _place(path: str) -> int:
    """Return the number of the chain that a file belongs to, or the number of chains for any other file."""
    starts = (tuple(f"{folder}/" for folder in chain) for chain in _CHAINS)
    return next((n for n, folders in enumerate(starts) if path.startswith(folders)), len(_CHAINS))


@dataclass(frozen=True)
class Stores:
    """The addresses of the databases of this run."""

    postgres_url: str
    redis_url: str
    qdrant_url: str

    def create_database(self) -> str:
        """Create a Postgres database with the schema and no rows, and return its address."""
        name = f"test_{uuid4().hex[:12]}"
        run_in_thread(copy_database(self.postgres_url, name))
        return f"{self.postgres_url.rsplit('/', 1)[0]}/{name}"

    def drop(self, postgres_url: str, prefix: str) -> None:
        """Drop a database, and the collections with this prefix: a whole run has no room for all of them."""
        run_in_thread(drop_database(postgres_url))
        # Without `verify=False` a client reads all certificate authorities, for 30 ms.
        with httpx.Client(base_url=self.qdrant_url, timeout=30, verify=False) as qdrant:  # noqa: S501  (plain HTTP)
            for collection in qdrant.get("/collections").json()["result"]["collections"]:
                if collection["name"].startswith(prefix):
                    qdrant.delete(f"/collections/{collection['name']}").raise_for_status()


@pytest.fixture(scope="session")
def stores() -> Iterator[Stores]:
    if given := os.environ.get("TEST_STORES"):  # `make mutants` starts them once for many runs
        yield Stores(**json.loads(given))
        return
    with memory_folder() as root:
        postgres = Postgres(root / "postgres", durable=False)
        redis, qdrant = Redis(root / "redis"), Qdrant(root / "qdrant")
        try:
            addresses = Stores(postgres.start(), redis.start(), qdrant.start())
            run_in_thread(shorten_logins(addresses.postgres_url))
            migrate(addresses.postgres_url)
            yield addresses
        finally:
            for store in (qdrant, redis, postgres):
                store.kill()  # their data goes with them


@pytest.fixture(scope="session")
def process_pool() -> Iterator[ProcessPool]:
    """What starts programs of Loci in a moment; see `tests.fork_server`."""
    pool = ProcessPool()
    yield pool
    pool.close()


def migrate(postgres_url: str) -> None:
    """Migrate the schema of a database with `loci migrate`."""
    env = {**os.environ, "LOCI_POSTGRES_URL": postgres_url}
    subprocess.run([sys.executable, "-m", "services.cli", "migrate"], env=env, check=True)


@pytest.fixture(scope="session")
def databases_apart() -> list[dict[str, str]]:
    """The settings of the databases that tests have to themselves, in the order of their creation."""
    return []


@pytest.fixture(autouse=True)
def _drop_databases_of_the_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """Drop what this test got for itself; what it shares with its module was made before and stays."""
    if "stores" not in request.fixturenames and "make_settings" not in request.fixturenames:
        yield
        return
    databases: list[dict[str, str]] = request.getfixturevalue("databases_apart")
    before = len(databases)
    yield
    stores: Stores = request.getfixturevalue("stores")
    for settings in databases[before:]:
        stores.drop(**settings)
    del databases[before:]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_url(stores: Stores) -> AsyncIterator[str]:
    """The address of the database that tests share; their gateways share one pool of connections to it."""
    url = stores.create_database()
    async with shared_pool.serving(url):
        yield url


_TABLES_OF_WORKERS = ("job", "removal", "model_pause", "periodic_run", "fleet_counter")
"""What workers share for all tenants. No other table is of a whole database, but for those of indexes."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def module_database(stores: Stores) -> AsyncIterator[dict[str, str]]:
    """The settings of a database and collections that the tests of a module share with no other module."""
    settings = {"prefix": f"t{uuid4().hex[:10]}", "postgres_url": stores.create_database()}
    async with shared_pool.serving(settings["postgres_url"]):
        yield settings
    stores.drop(**settings)


@pytest.fixture
async def database(module_database: dict[str, str]) -> dict[str, str]:
    """The settings of the module's database, in which no worker finds anything of an earlier test to do."""
    await empty_tables(module_database["postgres_url"], *_TABLES_OF_WORKERS)
    return module_database


@pytest.fixture(scope="session")
def make_settings(
    stores: Stores,
    shared_url: str,
    databases_apart: list[dict[str, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., config.Settings]:
    """Return a function that returns settings for these databases, with the changes of a test.

    `apart=True` gives the test a Postgres database and collections of its own. Tests that create index
    generations need it, because those belong to a database and not to a tenant. Tests that claim jobs take
    those of their module (`database`), which costs a tenth.
    """
    # To number its folders, `mktemp` lists them all: thousands by the end.
    folders = tmp_path_factory.mktemp("data")
    # A busy machine stops a store for seconds at times. Tests of a store that is late set their own time.
    stores_settings = {
        "redis_url": stores.redis_url,
        "qdrant_url": stores.qdrant_url,
        "redis_timeout": 5,
        "qdrant_timeout": 10,
    }
    usual = config.load(postgres_url=shared_url, **stores_settings)

    def make(*, apart: bool = False, **changes: Any) -> config.Settings:
        separate = {}
        if apart:
            separate = {"prefix": f"t{uuid4().hex[:10]}", "postgres_url": stores.create_database()}
            databases_apart.append(separate)
        data = folders / uuid4().hex
        data.mkdir()
        if not separate and not changes:  # to read the settings takes longer than a request
            return usual.model_copy(update={"data_dir": data})
        common = {"data_dir": data, "postgres_url": shared_url, **stores_settings}
        return config.load(**{**common, **separate, **changes})

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
async def running_gateway(
    settings: config.Settings, tenant: str, *, has_trusted_judge: bool = True
) -> AsyncIterator[Gateway]:
    """Run a gateway in this process, and issue a key with all rights for a tenant.

    Its language model, if it has one, is trusted as a judge, unless the test is about statements without one.
    A judge of its own is not.
    """
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        resources: Resources = app.state.resources
        if has_trusted_judge and settings.llm_base_url is not None and settings.judge_base_url is None:
            await trust_judge(resources, settings.judge_model or settings.llm_model or "stand-in")
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
