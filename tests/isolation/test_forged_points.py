"""The index is never trusted (IX5): a forged point does not reveal another tenant's record.

Every hit is read again from its own table, as the asking tenant. The forged points are copies of the
owner's points with another tenant's name. A bug in indexing could write such points, or somebody with
access to Qdrant.
"""

from contextlib import AbstractContextManager
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.isolation import sample_tenant
from tests.isolation.asking import contains_secret
from tests.isolation.conftest import IsolationStack
from tests.isolation.sample_tenant import SECRET

Protection = AbstractContextManager[Any]
SEARCHES = {
    "memory": ("/v1/memories/search", {"query": f"{SECRET} gate enriched pending"}),
    "turn": ("/v1/turns/search", {"query": f"{SECRET} gate said"}),
    "working": ("/v1/working/search", {"query": f"{SECRET} letters"}),
    "observation": ("/v1/observations/search", {"query": f"{SECRET} was observed"}),
    "playbook": ("/v1/playbooks/search", {"query": f"send the letter of {SECRET}"}),
    "skill": ("/v1/skills/search", {"query": f"How {SECRET} opens."}),
    "preference": ("/v1/preferences/resolve", {"situation": SECRET}),
}


@pytest.mark.parametrize("kind", SEARCHES)
async def test_a_point_copied_from_another_tenant_yields_nothing(
    stack: IsolationStack, protection: Protection, kind: str
) -> None:
    tenant = stack.stranger()
    assert await _forge(stack, kind, tenant) > 0
    async with await stack.gateway.new_client(tenant) as client:
        with protection:
            response = await _search(stack, client, kind)
            context = await _build_context(client, stack)
    assert _found(response) == []
    assert response.json()["degraded"] == []
    assert not contains_secret(response)
    assert not contains_secret(context)
    assert context.json()["recalled"] == []
    assert context.json()["blocks"] == []


@pytest.mark.parametrize("kind", SEARCHES)
async def test_the_owner_finds_the_points_that_were_copied(stack: IsolationStack, kind: str) -> None:
    """The test above can fail: for the owner, the same points are hits."""
    response = await _search(stack, stack.gateway.client, kind)
    assert _found(response)
    assert contains_secret(response)


def _found(response: httpx.Response) -> Any:
    body = response.json()
    return body["applies"] if "applies" in body else body["results"]


async def _forge(stack: IsolationStack, kind: str, tenant: str) -> int:
    """Copy the owner's points under another tenant's name, and return their number."""
    collection = await _collection_name(stack, kind)
    tenant_condition = {"key": "tenant", "match": {"value": stack.gateway.tenant}}
    body = {"filter": {"must": [tenant_condition]}, "limit": 1000, "with_payload": True, "with_vector": True}
    found = await stack.inspector.ask_qdrant("POST", f"collections/{collection}/points/scroll", body)
    points = [
        {"id": str(uuid4()), "vector": point["vector"], "payload": point["payload"] | {"tenant": tenant}}
        for point in found["points"]
    ]
    await stack.inspector.ask_qdrant("PUT", f"collections/{collection}/points?wait=true", {"points": points})
    return len(points)


async def _collection_name(stack: IsolationStack, kind: str) -> str:
    collections = (await stack.inspector.ask_qdrant("GET", "collections"))["collections"]
    prefix = f"{stack.settings.prefix}_{kind}_"
    (name,) = [row["name"] for row in collections if row["name"].startswith(prefix)]
    return str(name)


async def _search(stack: IsolationStack, client: httpx.AsyncClient, kind: str) -> httpx.Response:
    path, body = SEARCHES[kind]
    scope = {} if kind == "working" else sample_tenant.scope(stack.ids)
    response = await client.post(path, json=body | scope)
    assert response.status_code == 200, response.text
    return response


async def _build_context(client: httpx.AsyncClient, stack: IsolationStack) -> httpx.Response:
    """Build a context, because its past turns and recalled memories come from the index too."""
    session = await client.post("/v1/sessions", json=sample_tenant.scope(stack.ids))
    path = f"/v1/sessions/{session.json()['id']}/context"
    return await client.post(path, json={"message": "the gate, the letters and what was said"})
