"""Ids that look like something else: like two bindings, like a path, or like a part of an agent."""

from collections.abc import AsyncIterator, Callable
from urllib.parse import quote
from uuid import uuid4

import pytest
import pytest_asyncio

from shared.foundation import config
from tests.conftest import Gateway, running_gateway

MEMORY = {"content": "The key is under the mat.", "enrich": False}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def gateway(make_settings: Callable[..., config.Settings]) -> AsyncIterator[Gateway]:
    async with running_gateway(make_settings(), f"t-{uuid4().hex[:12]}") as gateway:
        yield gateway


@pytest.mark.parametrize("agent", ["inn user_id=ada", 'inn", "user_id": "ada'])
async def test_a_stored_response_is_only_for_the_binding_that_it_was_made_for(
    gateway: Gateway, agent: str
) -> None:
    headers = {"idempotency-key": uuid4().hex}
    async with (
        await gateway.new_client(agent_id="inn", user_id="ada") as ada,
        await gateway.new_client(agent_id=agent) as other,
    ):
        saved = await ada.post("/v1/memories", json=MEMORY, headers=headers)
        assert saved.status_code == 201, saved.text
        response = await other.post("/v1/memories", json=MEMORY, headers=headers)
        assert response.status_code == 201, response.text
        assert response.json()["agent_id"] == agent, "its own memory, not a response for another key"


@pytest.mark.parametrize("user", ["ada/b", "/", "a%2fb", "ada/../b", "ada?x#y", "Ada Ü"])
async def test_a_user_of_every_id_that_is_accepted_can_be_erased(gateway: Gateway, user: str) -> None:
    saved = await gateway.client.post("/v1/memories", json=MEMORY | {"user_id": user})
    assert saved.status_code == 201, saved.text
    receipt = await gateway.client.delete(f"/v1/users/{quote(user, safe='')}")
    assert receipt.status_code == 200, receipt.text
    assert receipt.json()["erased"]["memories"] == 1
    assert (await gateway.client.get(f"/v1/memories/{saved.json()['id']}")).status_code == 404


@pytest.mark.parametrize("user", [".", ".."])
async def test_an_id_that_clients_would_drop_from_a_path_is_refused(gateway: Gateway, user: str) -> None:
    for field in ("user_id", "agent_id"):
        response = await gateway.client.post("/v1/memories", json=MEMORY | {field: user})
        assert response.status_code == 422, response.text
        assert response.json()["errors"][0]["field"] == field


@pytest.mark.parametrize("part", ["texts", "kv", "files", "kv/note"])
async def test_no_agent_is_called_like_a_part_of_another(gateway: Gateway, part: str) -> None:
    """Else erasing the agent `inn/texts` would delete the texts of the agent `inn`."""
    for path, body in (
        ("/v1/memories", MEMORY | {"agent_id": f"inn/{part}"}),
        ("/v1/sessions", {"agent_id": f"inn/{part}"}),
    ):
        response = await gateway.client.post(path, json=body)
        assert response.status_code == 422, response.text
    assert (await gateway.client.post("/v1/sessions", json={"agent_id": "texts/inn"})).status_code == 201
