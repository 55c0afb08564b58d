"""Qdrant may go away and may lose everything: saves go on, search finds, and the index mends (F7)."""

from collections.abc import Callable
from typing import Any

from qdrant_client import AsyncQdrantClient, models

from tests.faults.conftest import Grounds
from tests.faults.history import History, Tally, eventually
from tests.faults.processes import Fleet


async def test_saves_go_on_while_qdrant_is_away_and_are_indexed_when_it_is_back(
    make_fleet: Callable[..., Fleet],
    grounds: Grounds,
    remember: Callable[..., Any],
    tell: Callable[[Tally], None],
) -> None:
    fleet = make_fleet()
    for role in ("work", "beat"):
        fleet.start(role)
    fleet.serve()
    history: History = await remember(fleet)
    await history.save_batch(200)
    with grounds.without(grounds.qdrant):
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
    tell(await history.check("Qdrant away during 700 of 1000 saves", 1))


async def test_an_index_that_lost_its_storage_comes_back_whole(
    make_fleet: Callable[..., Fleet],
    grounds: Grounds,
    remember: Callable[..., Any],
    tell: Callable[[Tally], None],
) -> None:
    fleet = make_fleet()
    for role in ("work", "beat"):
        fleet.start(role)
    fleet.serve()
    history: History = await remember(fleet)
    await history.save_batch(300)
    await history.quiet(within=30)
    with grounds.without(grounds.qdrant):
        grounds.wipe_qdrant()

    async def whole() -> bool:
        return await _points(fleet) == 300

    await eventually(whole, 60, f"seed {history.seed}: the points of 300 records")
    await history.quiet(within=30)
    await _finds_by_index(history)
    tell(await history.check("Qdrant's storage wiped", 1))


async def _finds_by_rows(history: History) -> None:
    await _finds(history, stages=["postgres"], degraded=["index"])


async def _finds_by_index(history: History) -> None:
    await _finds(history, stages=["bm25"], degraded=[])


async def _finds(history: History, **told: list[str]) -> None:
    save = history.random.choice(history.acknowledged)
    assert save.id in await history.found(save.word, **told), f"seed {history.seed}"


async def _points(fleet: Fleet) -> int:
    """Count the points of the collection that is read; none if there is no collection."""
    qdrant = AsyncQdrantClient(url=fleet.settings.qdrant_url, timeout=5, check_compatibility=False)
    try:
        alias = f"{fleet.settings.prefix}_memory"
        known = {one.alias_name for one in (await qdrant.get_aliases()).aliases}
        whole = models.Filter()
        return (await qdrant.count(alias, count_filter=whole, exact=True)).count if alias in known else 0
    finally:
        await qdrant.close()
