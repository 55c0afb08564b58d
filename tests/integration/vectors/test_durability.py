"""What survives a crash, and what works during other operations."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.models import PointStruct

from services.local import ports
from services.local.qdrant import Qdrant
from tests.integration.vectors.conftest import (
    Server,
    connected,
    create,
    numbers,
    point_id,
    unit,
    words,
)

pytestmark = pytest.mark.asyncio


def new_point(number: int) -> PointStruct:
    vector: dict[str, Any] = {"dense": unit(number % 8), "bm25": words(number % 50)}
    return PointStruct(id=point_id(number), vector=vector, payload={"n": number})


def alias_to(target: str) -> list[models.AliasOperations]:
    create_alias = models.CreateAlias(collection_name=target, alias_name="live")
    return [models.CreateAliasOperation(create_alias=create_alias)]


async def test_all_that_was_acknowledged_survives_kill_9(own_server: Server) -> None:
    async with connected(own_server.url) as client:
        await create(client, "points")
        await client.update_collection_aliases(alias_to("points"))
        await client.upsert("live", [new_point(number) for number in range(100)])
        for number in range(100, 150):
            await client.upsert("live", [new_point(number)])
        await client.update_vectors(
            "points", [models.PointVectors(id=point_id(3), vector={"dense": unit(7)})]
        )
        await client.set_payload("points", {"state": "final"}, points=[point_id(4)])
        await client.delete("points", [point_id(5)])
        own_server.kill()
    own_server.start()
    async with connected(own_server.url) as client:
        records, _ = await client.scroll("live", limit=1000, with_vectors=True)
        assert numbers(records) == [number for number in range(150) if number != 5]
        assert (records[3].vector, records[4].payload) == (
            {"dense": unit(7), "bm25": words(3)},
            {"n": 4, "state": "final"},
        )
        assert set((await client.get_collection("points")).payload_schema) >= {"tenant", "at"}


async def test_indexes_of_a_collection_without_points_survive_kill_9_and_are_built_with_the_first(
    tmp_path: Path,
) -> None:
    server = Qdrant(tmp_path)
    server.start()
    try:
        async with connected(server.url) as client:
            await create(client, "points")
        server.kill()
        due = tmp_path / "data" / "collections" / "000001" / "due-indexes.ndjson"
        due.write_bytes(due.read_bytes() + b'\n{"field_name": "cut o')  # by the kill, before an answer
        for _ in range(2):
            server.start()
            async with connected(server.url) as client:
                await client.upsert("points", [new_point(1)])
                assert not due.exists()
                schema = (await client.get_collection("points")).payload_schema
                assert schema.keys() == {"tenant", "tags", "at", "n", "weight"}
                assert schema["n"].points == 1
            server.kill()
    finally:
        server.kill()


async def test_acknowledged_points_survive_a_kill_at_any_time(own_server: Server) -> None:
    acknowledged: list[int] = []
    acknowledged_enough = asyncio.Event()

    async def write(client: AsyncQdrantClient, first: int) -> None:
        for number in range(first, 100_000, 4):
            await client.upsert("points", [new_point(number)])
            acknowledged.append(number)
            if len(acknowledged) >= 200:
                acknowledged_enough.set()

    async with connected(own_server.url) as client:
        await create(client, "points")
        writers = [asyncio.create_task(write(client, first)) for first in range(4)]
        await asyncio.wait_for(acknowledged_enough.wait(), 20)
        own_server.kill()
        await asyncio.gather(*writers, return_exceptions=True)
    own_server.start()
    async with connected(own_server.url) as client:
        records, _ = await client.scroll("points", limit=100_000)
    assert set(acknowledged) <= set(numbers(records))


async def test_searches_answer_while_others_write(client: AsyncQdrantClient, collection: str) -> None:
    await client.upsert(collection, [new_point(number) for number in range(200)])

    async def write(first: int) -> None:
        for number in range(first, first + 1000, 20):
            await client.upsert(collection, [new_point(n) for n in range(number, number + 20)])

    async def search() -> None:
        hits = await client.query_points(collection, query=words(7), using="bm25", limit=3)
        assert len(hits.points) == 3

    searches = await while_running(search, write(1000), write(2000), write(3000))
    assert searches >= 5
    assert (await client.count(collection)).count == 3200


async def test_an_alias_swap_never_breaks_a_search(own_server: Server) -> None:
    async with connected(own_server.url) as client:
        for name, number in {"old": 1, "new": 2}.items():
            await create(client, name)
            point = PointStruct(id=point_id(number), vector={"bm25": words(1)})
            await client.upsert(name, [point])
        await client.update_collection_aliases(alias_to("old"))
        seen: set[int] = set()

        async def search() -> None:
            seen.update(numbers((await client.query_points("live", query=words(1), using="bm25")).points))

        async def swap() -> None:
            for number in range(20):
                await client.update_collection_aliases(alias_to("new" if number % 2 else "old"))

        assert await while_running(search, swap()) >= 5
        assert seen == {1, 2}


async def test_the_local_server_stops_in_order_within_two_seconds(own_local_server: Server) -> None:
    pid = own_local_server.pid or 0
    async with connected(own_local_server.url) as client:
        await create(client, "points")
        await client.upsert("points", [new_point(number) for number in range(1000)])
        os.kill(pid, signal.SIGTERM)
        status = await asyncio.wait_for(asyncio.to_thread(os.waitid, os.P_PID, pid, WAIT), 2)
    assert status is not None
    assert (status.si_code, status.si_status) == (os.CLD_EXITED, 0)


@pytest.mark.usefixtures("own_local_server")
async def test_no_second_process_opens_the_same_data(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "services.local.vectors", "--port", str(ports.pick_free_port())]
    second = await asyncio.create_subprocess_exec(
        *command, "--data", str(tmp_path / "data"), stderr=asyncio.subprocess.PIPE
    )
    _, error_output = await asyncio.wait_for(second.communicate(), 20)
    assert second.returncode
    assert b"another process holds" in error_output


WAIT = os.WEXITED | os.WNOWAIT


async def while_running(act: Callable[[], Awaitable[None]], *work: Awaitable[None]) -> int:
    """Repeat `act` until all work is done; return the number of repetitions."""
    done = asyncio.gather(*work)
    count = 0
    while not done.done():
        await act()
        count += 1
    await done
    return count
