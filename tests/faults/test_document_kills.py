"""MM7: a worker that is killed in the middle of a long document doubles nothing and shows no half of it."""

import asyncio
import time
from collections.abc import Callable
from functools import partial

import httpx
from sqlalchemy import func, select

from shared.foundation.stages import RecordKind
from shared.memory.documents.table import document_chunk
from shared.platform.resources import open_resources
from shared.search.index import filters
from tests.agent import Agent, Json
from tests.faults.processes import Fleet

CHUNKS = 2000
KILLED_AT = (0.2, 0.5)
"""The progress of the document at which a worker is killed."""
_WITHIN = 50.0


async def test_a_worker_killed_twice_in_a_long_document_stores_each_chunk_once_and_shows_no_half(
    make_fleet: Callable[..., Fleet], tenant: str
) -> None:
    fleet = make_fleet(job_lease=6, job_max_attempts=100)
    fleet.serve()
    fleet.start("beat")
    worker = fleet.start("work")
    async with await fleet.client(tenant) as client:
        old = await _upload(client, "The old harbour is closed.")
        await _until(client, old["id"], lambda found: found["state"] == "ready")
        new = await _upload(client, _long_text())
        for progress in KILLED_AT:
            await _until(client, new["id"], partial(_has_come_to, progress))
            worker.kill()
            stopped = await _get(client, new["id"])
            assert (stopped["state"], stopped["searchable"]) == ("processing", True)
            assert await _texts(client) == {"The old harbour is closed."}
            worker = fleet.start("work")
        ready = await _until(client, new["id"], lambda found: found["state"] == "ready")
        await Agent(client, tenant).wait_until_idle(within=30)
        assert ready["chunk_count"] == CHUNKS
        assert await _counts(fleet, tenant) == (CHUNKS, CHUNKS, CHUNKS)
        assert all("Berth" in text for text in await _texts(client))


def _has_come_to(progress: float, document: Json) -> bool:
    return bool(document["progress"] >= progress)


def _long_text() -> str:
    """Return a text of so many chunks: each paragraph is one, and no two fit into one."""
    filler = "All of this stands in the handbook of the harbour. " * 12
    return "\n\n".join(f"Berth {number}: {filler}" for number in range(CHUNKS))


async def _upload(client: httpx.AsyncClient, content: str) -> Json:
    files = {"file": ("harbour.txt", content.encode())}
    response = await client.post("/v1/documents", files=files, data={"source": "harbour"})
    assert response.status_code == 202, response.text
    return dict(response.json())


async def _get(client: httpx.AsyncClient, document_id: str) -> Json:
    return dict((await client.get(f"/v1/documents/{document_id}")).json())


async def _until(client: httpx.AsyncClient, document_id: str, is_met: Callable[[Json], bool]) -> Json:
    """Wait until a document meets a condition. What is found meanwhile is of one version."""
    deadline = time.monotonic() + _WITHIN
    while not is_met(found := await _get(client, document_id)):
        assert time.monotonic() < deadline, found
        assert found["state"] != "failed", found
        assert len({"Berth" in text for text in await _texts(client)}) <= 1
        await asyncio.sleep(0.05)
    return found


async def _texts(client: httpx.AsyncClient) -> set[str]:
    response = await client.post("/v1/documents/search", json={"query": "harbour"})
    return {result["text"] for result in response.json()["results"]}


async def _counts(fleet: Fleet, tenant: str) -> tuple[int, int, int]:
    """Return how many chunks the tenant has, how many places of chunks, and how many points."""
    async with open_resources(fleet.settings) as resources:
        place = func.distinct(document_chunk.c.version, document_chunk.c.position)
        async with resources.postgres.for_tenant(tenant) as tx:
            statement = select(func.count(), func.count(place)).select_from(document_chunk)
            chunks, places = (await tx.execute(statement)).one()
        generation = await resources.search_index.live(RecordKind.DOCUMENT_CHUNK)
        path = f"collections/{generation.collection}/points/count"
        condition = filters.all_of(filters.tenant_condition(tenant))
        async with resources.qdrant.call_guard():
            found = await resources.qdrant.call("POST", path, {"filter": condition, "exact": True})
    return chunks, places, int(found["count"])
