"""IX5: the index is never trusted.

A point that claims to be ours but names somebody else's record yields nothing, because every hit
is read again from its own store, as the asking tenant.

The points are copies of the owner's own, with the stranger's name as their tenant: what a bug in
indexing, or somebody with access to Qdrant, might leave there.
"""

from contextlib import AbstractContextManager
from typing import Any
from uuid import uuid4

import httpx
import pytest
from qdrant_client import models

from tests.isolation import planted
from tests.isolation.asking import betrays
from tests.isolation.conftest import IsolationStack
from tests.isolation.planted import CANARY

Locks = AbstractContextManager[Any]
SEARCHES = {
    "memory": ("/v1/memories/search", {"query": f"{CANARY} gate enriched pending"}),
    "turn": ("/v1/turns/search", {"query": f"{CANARY} gate said"}),
    "working": ("/v1/working/search", {"query": f"{CANARY} letters"}),
    "observation": ("/v1/observations/search", {"query": f"{CANARY} was observed"}),
}


@pytest.mark.parametrize("kind", SEARCHES)
async def test_a_foreign_tenants_point_under_our_name_yields_nothing(
    house: IsolationStack, locks: Locks, kind: str
) -> None:
    tenant = house.stranger()
    assert await _forge(house, kind, tenant) > 0
    async with await house.gateway.another(tenant) as client:
        with locks:
            answer = await _search(house, client, kind)
            turn = await _context(client, house)
    assert answer.json()["results"] == []
    assert answer.json()["degraded"] == []
    assert not betrays(answer)
    assert not betrays(turn)
    assert turn.json()["recalled"] == []
    assert turn.json()["blocks"] == []


@pytest.mark.parametrize("kind", SEARCHES)
async def test_the_forged_points_are_what_the_search_would_find(house: IsolationStack, kind: str) -> None:
    """The test above can fail: for the owner, points like these are hits."""
    answer = await _search(house, house.gateway.client, kind)
    assert answer.json()["results"]
    assert betrays(answer)


async def _forge(house: IsolationStack, kind: str, tenant: str) -> int:
    """Copy the owner's points under another tenant's name; return how many there are."""
    collection = await _collection(house, kind)
    mine = models.FieldCondition(key="tenant", match=models.MatchValue(value=house.gateway.tenant))
    found, _ = await house.eye.qdrant.scroll(
        collection, models.Filter(must=[mine]), limit=1000, with_vectors=True
    )
    points = [_renamed(one, tenant) for one in found]
    await house.eye.qdrant.upsert(collection, points, wait=True)
    return len(points)


def _renamed(point: models.Record, tenant: str) -> models.PointStruct:
    payload = (point.payload or {}) | {"tenant": tenant}
    vector: Any = point.vector or {}
    return models.PointStruct(id=str(uuid4()), vector=vector, payload=payload)


async def _collection(house: IsolationStack, kind: str) -> str:
    names = [one.name for one in (await house.eye.qdrant.get_collections()).collections]
    (name,) = [name for name in names if name.startswith(f"{house.settings.prefix}_{kind}_")]
    return name


async def _search(house: IsolationStack, client: httpx.AsyncClient, kind: str) -> httpx.Response:
    path, body = SEARCHES[kind]
    scope = {} if kind == "working" else planted.scope(house.ids)
    answer = await client.post(path, json=body | scope)
    assert answer.status_code == 200, answer.text
    return answer


async def _context(client: httpx.AsyncClient, house: IsolationStack) -> httpx.Response:
    """Ask for a turn's context, whose past turns and recall come from the index, too."""
    opened = await client.post("/v1/sessions", json=planted.scope(house.ids))
    path = f"/v1/sessions/{opened.json()['id']}/context"
    return await client.post(path, json={"message": "the gate, the letters and what was said"})
