"""Memories that a run changes, and requests to undo it."""

from typing import Any

from tests.conftest import Gateway

Json = dict[str, Any]


async def save(gateway: Gateway, content: str, **fields: Any) -> str:
    body = {"content": content, "enrich": False, **fields}
    return str((await gateway.client.post("/v1/memories", json=body)).json()["id"])


async def get(gateway: Gateway, memory_id: str) -> Json:
    return dict((await gateway.client.get(f"/v1/memories/{memory_id}")).json())


async def undo(gateway: Gateway, run: Json) -> Json:
    response = await gateway.client.post(f"/v1/dreams/{run['id']}/undo")
    assert response.status_code == 200, response.text
    return dict(response.json())
