"""A name that ends like a part of a large value (`-index`, `-chunk0`) gives no right to its namesake."""

from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio

from shared.foundation import config
from tests.conftest import Gateway, running_gateway

suffixes = pytest.mark.parametrize("suffix", ["-index", "-chunk0", "-INDEX"])


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def gateway(make_settings: Callable[..., config.Settings]) -> AsyncIterator[Gateway]:
    async with running_gateway(make_settings(), f"t-{uuid4().hex[:12]}") as gateway:
        yield gateway


async def _put(client: httpx.AsyncClient, key: str, **fields: Any) -> None:
    body = {"value": "the key is under the mat", "ttl_seconds": 600} | fields
    response = await client.put(f"/v1/working/{key}", json=body)
    assert response.status_code == 200, response.text


@suffixes
async def test_clearing_asks_for_the_owner_of_exactly_the_namespace_it_clears(
    gateway: Gateway, suffix: str
) -> None:
    name = f"trip-{uuid4().hex[:8]}"
    async with await gateway.new_client(user_id="ada") as ada, await gateway.new_client(user_id="bob") as bob:
        assert (await ada.post("/v1/sessions", json={"id": name})).status_code == 201
        assert (await bob.post("/v1/sessions", json={"id": name + suffix})).status_code == 201
        await _put(bob, f"session/{name}{suffix}/note")
        cleared = await ada.delete("/v1/working", params={"prefix": f"session/{name}{suffix}"})
        assert cleared.status_code == 404, cleared.text
        assert (await bob.get(f"/v1/working/session/{name}{suffix}/note")).status_code == 200
        cleared = await bob.delete("/v1/working", params={"prefix": f"session/{name}{suffix}"})
        assert (cleared.status_code, cleared.json()["deleted"]) == (200, 1), "its owner may"


async def test_a_context_lists_no_outline_of_anothers_subagent(gateway: Gateway) -> None:
    name = f"sub-{uuid4().hex[:8]}"
    chapters = "\n\n".join(f"# Chapter {number}\n\n{'word ' * 2000}" for number in range(4))
    async with await gateway.new_client(user_id="ada") as ada, await gateway.new_client(user_id="bob") as bob:
        opened = await ada.post("/v1/sessions", json={"kind": "subagent", "name": name})
        assert opened.status_code == 201, opened.text
        await _put(ada, f"subagent/{name}", value=chapters, tags=["secret"])
        sessions = {
            client: (await client.post("/v1/sessions", json={})).json()["id"] for client in (ada, bob)
        }
        texts = {
            client: (await client.post(f"/v1/sessions/{id_}/context", json={"message": "What is new?"})).text
            for client, id_ in sessions.items()
        }
        assert f"subagent/{name}-index" in texts[ada]
        assert name not in texts[bob]
