"""A user's own memory and a common one of the same text: a recall shows the own one alone."""

import httpx
import pytest

from tests.conftest import Gateway

TEXT = "The lighthouse keeper prefers porridge."


async def _save_common_and_own(gateway: Gateway) -> tuple[str, str]:
    common = await gateway.client.post("/v1/memories", json={"content": TEXT})
    async with await gateway.new_client(user_id="ada") as client:
        own = await client.post("/v1/memories", json={"content": f" {TEXT.upper()}"})
    return common.json()["id"], own.json()["id"]


async def test_saving_a_text_of_the_common_memories_makes_an_own_one(gateway: Gateway) -> None:
    common_id, own_id = await _save_common_and_own(gateway)
    assert own_id != common_id
    common = (await gateway.client.get(f"/v1/memories/{common_id}")).json()
    own = (await gateway.client.get(f"/v1/memories/{own_id}")).json()
    assert (common["user_id"], common["reinforcement_count"]) == (None, 1)
    assert (own["user_id"], own["reinforcement_count"]) == ("ada", 1)


@pytest.mark.parametrize("message", ["porridge of the lighthouse keeper", "nothing of this is known"])
async def test_a_recall_that_finds_both_shows_the_own_one(gateway: Gateway, message: str) -> None:
    """By the words of the message, and by the newest memories of a first turn that matches nothing."""
    common_id, own_id = await _save_common_and_own(gateway)
    assert await _recalled(gateway.client, message, "ada") == {own_id}
    assert await _recalled(gateway.client, message, "bob") == {common_id}
    assert await _recalled(gateway.client, message, None) == {common_id}


async def _recalled(client: httpx.AsyncClient, message: str, user: str | None) -> set[str]:
    session = (await client.post("/v1/sessions", json={"user_id": user})).json()
    context = await client.post(f"/v1/sessions/{session['id']}/context", json={"message": message})
    return {memory["id"] for memory in context.json()["recalled"]}


async def test_a_search_shows_the_common_one_if_the_own_one_does_not_meet_the_filter(
    gateway: Gateway,
) -> None:
    await gateway.client.post("/v1/memories", json={"content": TEXT, "tags": ["kept"]})
    await gateway.client.post("/v1/memories", json={"content": TEXT, "user_id": "ada"})
    body = {"query": "porridge", "user_id": "ada"}
    found = [
        (await gateway.client.post("/v1/memories/search", json=body | filters)).json()["results"]
        for filters in ({}, {"tags": ["kept"]})
    ]
    assert [[memory["user_id"] for memory in memories] for memories in found] == [["ada"], [None]]
