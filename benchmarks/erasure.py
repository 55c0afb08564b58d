"""How long deletions take: `python -m benchmarks.erasure [--memories 20000] [--turns 3000]`.

A user's memories are saved and indexed, then the user is erased, and a session of many turns is deleted.
Shown are the seconds until the answer, whether anything of them can be read from then on, and the seconds
until the databases hold nothing: rows, keys and points are counted in Postgres, Redis and Qdrant.
"""

import asyncio
import time
from dataclasses import dataclass
from typing import Annotated, Any

import asyncpg
import httpx
import typer
from qdrant_client import AsyncQdrantClient

from benchmarks import local_stack, machine, table
from benchmarks.local_stack import BenchmarkStack
from shared.foundation import config
from shared.infra.redis import open_redis

_BATCH = 1000
_USER = "ada"
_WORD = "quince"
_PAUSE = 0.2
_MAX_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Measurement:
    """One deletion: seconds until its answer, what was readable then, and seconds until nothing was left."""

    name: str
    status: str
    answered: float
    readable: int
    emptied: float


def main(
    memories: Annotated[int, typer.Option(help="Memories of the user that is erased.")] = 20_000,
    turns: Annotated[int, typer.Option(help="Turns of the session that is deleted.")] = 3_000,
    embedder: Annotated[str | None, typer.Option(help="An OpenAI-compatible address, or `local`.")] = None,
) -> None:
    """Measure both deletions on a stack of their own, and print a table."""
    print(machine.describe())
    with local_stack.running(embedder, dream_enabled=False) as running:
        measurements = asyncio.run(_measure(running, memories, turns))
    head = ("deleted", "status", "answered after s", "still readable", "nothing left after s")
    table.show(head, [_row(measurement) for measurement in measurements])


def _row(result: Measurement) -> list[str]:
    return [
        result.name,
        result.status,
        f"{result.answered:.2f}",
        str(result.readable),
        f"{result.emptied:.1f}",
    ]


async def _measure(running: BenchmarkStack, memories: int, turns: int) -> list[Measurement]:
    headers = {"authorization": f"Bearer {running.key}"}
    async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=_MAX_SECONDS) as client:
        stores = await Stores.open(running.settings)
        try:
            return [
                await _erase_user(client, stores, memories),
                await _delete_session(client, stores, turns),
            ]
        finally:
            await stores.close()


async def _erase_user(client: httpx.AsyncClient, stores: "Stores", count: int) -> Measurement:
    for start in range(0, count, _BATCH):
        numbers = range(start, min(start + _BATCH, count))
        batch = [{"content": f"Ada keeps {_WORD} number {n}.", "user_id": _USER} for n in numbers]
        (await client.post("/v1/memories/batch", json={"memories": batch})).raise_for_status()
    session = (await client.post("/v1/sessions", json={"user_id": _USER})).json()["id"]
    await client.post(f"/v1/sessions/{session}/context", json={"message": f"How many {_WORD}?"})
    await client.put(f"/v1/working/session/{session}/note", json={"value": _WORD, "ttl_seconds": 3600})
    await _until_settled(client)
    return await _delete(client, stores, f"user with {count} memories", f"/v1/users/{_USER}")


async def _delete_session(client: httpx.AsyncClient, stores: "Stores", count: int) -> Measurement:
    session = (await client.post("/v1/sessions", json={})).json()["id"]
    for start in range(0, count, _BATCH):
        numbers = range(start, min(start + _BATCH, count))
        batch = [{"role": "user", "content": f"Turn {n} names {_WORD}."} for n in numbers]
        path = f"/v1/sessions/{session}/turns/batch"
        (await client.post(path, json={"turns": batch})).raise_for_status()
    await _until_settled(client)
    return await _delete(client, stores, f"session of {count} turns", f"/v1/sessions/{session}")


async def _delete(client: httpx.AsyncClient, stores: "Stores", name: str, path: str) -> Measurement:
    started = time.perf_counter()
    response = await client.delete(path)
    answered = time.perf_counter() - started
    response.raise_for_status()
    readable = await _count_readable(client)
    while (left := await stores.count_left()) and time.perf_counter() - started < _MAX_SECONDS:  # noqa: ASYNC110
        await asyncio.sleep(_PAUSE)
    emptied = float("inf") if left else time.perf_counter() - started - answered
    return Measurement(name, str(response.status_code), answered, readable, emptied)


async def _count_readable(client: httpx.AsyncClient) -> int:
    """Return on how many routes the erased text can still be read."""
    scope = {"user_id": _USER}
    question = {"query": _WORD, **scope}
    responses = [
        await client.post("/v1/memories/search", json=question),
        await client.post("/v1/memories/search", json=question | {"state": "archived"}),
        await client.post("/v1/turns/search", json=question),
        await client.post("/v1/turns/search", json={"query": _WORD}),
        await client.post("/v1/working/search", json={"query": _WORD}),
        await client.get("/v1/memories", params=scope),
        await client.get("/v1/memories/export", params=scope),
    ]
    return sum(_WORD in response.text for response in responses)


async def _until_settled(client: httpx.AsyncClient) -> None:
    deadline = time.monotonic() + _MAX_SECONDS
    while any((await client.get("/v1/status")).json()["pending"].values()):
        if time.monotonic() > deadline:
            raise SystemExit("the index did not settle")
        await asyncio.sleep(_PAUSE)


@dataclass(frozen=True, slots=True)
class Stores:
    """Connections that count what is left, past the product."""

    postgres: asyncpg.Connection
    redis: Any
    qdrant: AsyncQdrantClient

    @classmethod
    async def open(cls, settings: config.Settings) -> "Stores":
        """Connect to the databases of a stack."""
        url = config.require_setting(settings.postgres_url, "LOCI_POSTGRES_URL")
        qdrant = AsyncQdrantClient(url=settings.qdrant_url, check_compatibility=False)
        return cls(await asyncpg.connect(url), open_redis(settings), qdrant)

    async def count_left(self) -> int:
        """Return the number of rows, keys and points of memories, turns and working memory."""
        rows = 0
        for name in ("memory", "memory_history", "session", "turn", "idempotent_response"):
            rows += await self.postgres.fetchval(f"SELECT count(*) FROM {name}")  # noqa: S608
        keys = [key async for key in self.redis.scan_iter(match="*:window:*")]
        keys += [key async for key in self.redis.scan_iter(match="*:working:*:values")]
        points = 0
        for collection in (await self.qdrant.get_collections()).collections:
            points += (await self.qdrant.count(collection.name, exact=True)).count
        return rows + len(keys) + points

    async def close(self) -> None:
        """Close the connections."""
        await self.postgres.close()
        await self.redis.aclose()
        await self.qdrant.close()


if __name__ == "__main__":
    typer.run(main)
