"""A whole sweep: safe to repeat, safe beside another one, and only as strong as its step's store."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

import pytest
from pydantic import SecretStr

from shared.foundation.stages import RecordKind
from shared.platform.resources import open_resources
from tests.integration.sweep.house import TestStack
from workers.sweep import sweep
from workers.sweep.sweep import Counts


@pytest.fixture
def nowhere() -> str:
    """A port of this machine that refuses."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{closed.getsockname()[1]}"


async def fill_with_everything(house: TestStack) -> None:
    """Build one of each state of the world that a sweep mends."""
    archived, noted, lost = [await house.save(name) for name in ("archived", "noted", "lost")]
    over, talk = await house.open(ttl_seconds=60), await house.open()
    await house.say(over, "said in a session that is over")
    await house.say(talk, "said long ago")
    await house.say(talk, "said today")
    await house.lay(f"session/{over}/note", "note")
    await house.client.post("/v1/memories", json={"content": "keyed"}, headers={"Idempotency-Key": "k"})
    await house.resources.index_writer.close()
    await house.sql("UPDATE memory SET state = 'archived' WHERE id = :id", id=archived)
    await house.backdate("memory", "archived_at", 91, id=archived)
    await house.backdate("memory_history", "created_at", 31, memory_id=noted)
    await house.backdate("session", "expires_at", 1, id=over)
    await house.backdate("turn", "received_at", 11, session_id=talk, seq=1)
    await house.backdate("idempotent_response", "created_at", 2, key="k")
    await house.plant(RecordKind.MEMORY, "ffffffffffff", 1)
    await house.plant(RecordKind.WORKING, "session/x/over", 1, expires_at="2020-01-01T00:00:00Z")
    await house.lose(RecordKind.MEMORY, [lost])


WHOLE = {
    "expired_sessions": 1,
    "expired_desk_points": 1,
    "orphan_points": 1,
    "missing_points": 1,
    "purged_archived": 1,
    "expired_turns": 1,
    "expired_history": 1,
    "expired_answers": 1,
}


def mended(counts: Counts) -> dict[str, Any]:
    return {name: number for name, number in asdict(counts).items() if number}


async def test_one_sweep_mends_all_counts_it_and_leaves_nothing_for_the_next(house: TestStack) -> None:
    await fill_with_everything(house)
    assert mended(await house.sweep()) == WHOLE
    assert await house.repairs() == WHOLE
    await house.settle()
    assert mended(await house.sweep()) == {}
    assert await house.repairs() == WHOLE


async def test_two_sweeps_at_once_do_no_harm_and_count_what_goes_once(house: TestStack) -> None:
    await fill_with_everything(house)
    await house.resources.index_writer.close()
    both = await asyncio.gather(*(sweep.sweep_once(house.resources) for _ in range(2)))
    rows = ("expired_sessions", "purged_archived", "expired_turns", "expired_history", "expired_answers")
    assert {name: sum(getattr(counts, name) for counts in both) for name in rows} == dict.fromkeys(rows, 1)
    await house.settle()
    assert mended(await house.sweep()) == {}
    assert sorted(row.content for row in await house.sql("SELECT content FROM memory")) == [
        "keyed",
        "lost",
        "noted",
    ]
    assert {version for _, version in await house.points()} == {1}
    assert len(await house.points()) == 3
    assert len(await house.points(RecordKind.TURN)) == 1


@asynccontextmanager
async def without(house: TestStack, **away: Any) -> AsyncIterator[TestStack]:
    """Open the house by other addresses."""
    settings = house.resources.settings.model_copy(update=away)
    async with open_resources(settings) as resources:
        yield TestStack(type(house.gateway)(house.client, resources, house.tenant))


async def test_with_qdrant_away_the_rows_are_mended_and_the_points_follow_later(
    house: TestStack, nowhere: str
) -> None:
    await fill_with_everything(house)
    async with without(house, qdrant_url=f"http://{nowhere}") as partly:
        counts = mended(await partly.sweep())
    points = {"expired_desk_points", "orphan_points", "missing_points"}
    assert counts == {name: number for name, number in WHOLE.items() if name not in points}
    await house.settle()
    again = mended(await house.sweep())
    assert again.keys() <= points
    await house.settle()
    assert len(await house.points()) == 3
    assert {ref for ref, _ in await house.points(RecordKind.WORKING)} == set()


async def test_with_redis_away_its_step_is_left_and_the_others_are_done(
    house: TestStack, nowhere: str
) -> None:
    await fill_with_everything(house)
    async with without(
        house, redis_url=SecretStr(f"redis://{nowhere}"), broker_url=SecretStr("memory://")
    ) as partly:
        counts = mended(await partly.sweep())
    assert counts["expired_desk_points"] == 1
    assert mended(await house.sweep()).keys() <= WHOLE.keys()
    await house.settle()
    assert mended(await house.sweep()) == {}
    assert len(await house.points()) == 3


async def test_with_postgres_away_a_sweep_ends_in_peace(house: TestStack, nowhere: str) -> None:
    async with without(house, postgres_url=SecretStr(f"postgresql://x@{nowhere}/x")) as partly:
        assert mended(await sweep.sweep_once(partly.resources)) == {}


async def test_the_metrics_name_every_count_of_a_sweep() -> None:
    assert set(asdict(Counts())) >= {*WHOLE, "abandoned", "generations_begun", "expired_vectors"}
