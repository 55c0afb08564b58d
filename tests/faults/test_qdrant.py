"""Qdrant stops or loses all data: saves and searches go on, and the index is repaired."""

from collections.abc import Callable
from typing import Any

from qdrant_client import AsyncQdrantClient, models

from tests.faults.conftest import FaultEnvironment
from tests.faults.history import History, RunFigures, eventually
from tests.faults.processes import Fleet


async def test_saves_go_on_without_qdrant_and_are_indexed_when_it_runs_again(
    make_fleet: Callable[..., Fleet],
    environment: FaultEnvironment,
    remember: Callable[..., Any],
    report: Callable[[RunFigures], None],
) -> None:
    fleet = make_fleet()
    for role in ("work", "beat"):
        fleet.start(role)
    fleet.serve()
    history: History = await remember(fleet)
    await history.save_batch(200)
    with environment.without(environment.qdrant):
        for _ in range(12):
            await history.save_batch(50)
            await _finds_by_rows(history)
        await history.save_many(100)
        assert all(save.tries == 1 for save in history.saves[-100:]), f"seed {history.seed}"
        assert (await history.status())["pending"]["index"] >= 700
    await history.save_batch(100)
    await history.quiet(within=60)
    await _finds_by_index(history)
    assert await _points(fleet) == len(history.saves) == 1000
    report(await history.check("Qdrant stopped during 700 of 1000 saves", 1))


async def test_an_index_that_lost_its_storage_is_rebuilt_completely(
    make_fleet: Callable[..., Fleet],
    environment: FaultEnvironment,
    remember: Callable[..., Any],
    report: Callable[[RunFigures], None],
) -> None:
    fleet = make_fleet()
    for role in ("work", "beat"):
        fleet.start(role)
    fleet.serve()
    history: History = await remember(fleet)
    await history.save_batch(300)
    await history.quiet(within=30)
    with environment.without(environment.qdrant):
        environment.wipe_qdrant()

    async def is_complete() -> bool:
        return await _points(fleet) == 300

    await eventually(is_complete, 60, f"seed {history.seed}: the points of 300 records")
    await history.quiet(within=30)
    await _finds_by_index(history)
    report(await history.check("Qdrant's storage wiped", 1))


async def _finds_by_rows(history: History) -> None:
    await _finds(history, stages=["postgres"], degraded=["index"])


async def _finds_by_index(history: History) -> None:
    await _finds(history, stages=["bm25"], degraded=[])


async def _finds(history: History, **expected: list[str]) -> None:
    save = history.random.choice(history.acknowledged)
    assert save.id in await history.search_ids(save.word, **expected), f"seed {history.seed}"


async def _points(fleet: Fleet) -> int:
    """Count the points of the live collection; 0 if there is none."""
    qdrant = AsyncQdrantClient(url=fleet.settings.qdrant_url, timeout=5, check_compatibility=False)
    try:
        alias = f"{fleet.settings.prefix}_memory"
        aliases = {entry.alias_name for entry in (await qdrant.get_aliases()).aliases}
        everything = models.Filter()
        return (
            (await qdrant.count(alias, count_filter=everything, exact=True)).count if alias in aliases else 0
        )
    finally:
        await qdrant.close()
