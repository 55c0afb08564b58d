"""A search of working memory without words lists the newest entries."""

import pytest

from tests.agent import Agent
from tests.conftest import Gateway


@pytest.mark.parametrize("query", [None, "", "  ", "\n\t"])
async def test_without_a_word_in_the_query_the_newest_entries_come_first(
    gateway: Gateway, query: str | None
) -> None:
    agent = Agent(gateway.client, gateway.tenant)
    for name in ("first", "second", "third"):
        await agent.put(f"patrol/mail/{name}", "a note")
    response = await agent.request("POST", "/v1/working/search", json={"query": query, "limit": 2})
    assert [entry["key"] for entry in response["results"]] == ["patrol/mail/third", "patrol/mail/second"]
    assert response["stages"] == ["newest"]


async def test_without_a_query_a_bound_key_gets_none_of_anothers_entries(gateway: Gateway) -> None:
    agent = Agent(gateway.client, gateway.tenant)
    for user in ("bob", "ada"):
        await agent.put(f"session/{await agent.session(id=user, user_id=user)}/note", "a note")
    async with await gateway.new_client(user_id="bob") as client:
        search = {"limit": 1}
        response = await Agent(client, gateway.tenant).request("POST", "/v1/working/search", json=search)
    assert [entry["key"] for entry in response["results"]] == ["session/bob/note"]
