"""Entries of working memory are found while the index is unavailable."""

from tests.agent import Agent
from tests.conftest import Gateway, running_gateway


async def test_without_the_index_all_visible_entries_are_scored_and_the_best_comes_first(
    gateway: Gateway,
) -> None:
    settings = gateway.resources.settings.model_copy(update={"qdrant_url": "http://127.0.0.1:1"})
    async with running_gateway(settings, gateway.tenant) as served:
        agent = Agent(served.client, served.tenant)
        await agent.put("patrol/mail/lamp", "nothing of interest")
        await agent.put("patrol/mail/note", "the red lantern of the harbour", tags=["reminder"])
        await agent.put("patrol/mail/other", "a lantern", tags=["reminder"])
        await agent.put("patrol/post/note", "the red lantern of the post office", tags=["reminder"])
        fields = {"query": "red lantern", "prefix": "patrol/mail", "tags": ["reminder"]}
        response = await agent.request("POST", "/v1/working/search", json=fields)
    assert [entry["key"] for entry in response["results"]] == ["patrol/mail/note", "patrol/mail/other"]
    assert (response["stages"], response["degraded"]) == (["working"], ["index"])
