"""`loci reindex` while an agent goes on searching, saving and deleting."""

import asyncio
from http import HTTPStatus

from tests.journey.agent import Agent, word
from tests.journey.stack import Ended, TestStack

SAVED_BEFORE = 200


async def test_ix2_a_reindex_loses_no_search_no_save_and_no_delete(stack: TestStack, agent: Agent) -> None:
    secret = word()
    before = [f"The {secret} stone {n} lies in row {word()}." for n in range(SAVED_BEFORE)]
    drafts = [{"content": text} for text in before]
    await agent.ask("POST", "/v1/memories/batch", json={"memories": drafts}, status=HTTPStatus.CREATED)
    doomed = await agent.save(f"The {secret} pebble is to go.")
    rebuilding = asyncio.create_task(stack.loci("reindex", "--kind", "memory"))
    meanwhile = await _go_on(agent, rebuilding, before, doomed["id"])
    ended = await rebuilding
    assert ended.code == 0, ended.stderr
    assert "the new index is in use" in ended.stderr
    assert len(meanwhile) >= 5
    await agent.settled()
    for text in [*before[::20], *meanwhile]:
        response = await agent.search(text.split()[-1])
        assert [one["content"] for one in response["results"]] == [text]
        assert (response["stages"], response["degraded"]) == (["bm25"], [])
    assert await agent.found("pebble") == []


async def _go_on(agent: Agent, rebuilding: asyncio.Task[Ended], before: list[str], doomed: str) -> list[str]:
    """Search and save until the index is rebuilt, and delete one entry; return what was saved."""
    saved: list[str] = []
    while not rebuilding.done():
        known = before[len(saved) % len(before)]
        response = await agent.search(known.split()[-1])
        assert ([one["content"] for one in response["results"]], response["degraded"]) == ([known], [])
        name = word()
        fresh = f"Meanwhile there was {name}"
        await agent.save(fresh)
        assert await agent.found(name) == [fresh]
        saved.append(fresh)
        if len(saved) == 3:
            await agent.ask("DELETE", f"/v1/memories/{doomed}")
    return saved


async def test_ix2_turns_and_desks_are_rebuilt_too(stack: TestStack, agent: Agent) -> None:
    secret, session = word(), await agent.session()
    await agent.say(session, f"We spoke of {secret}.")
    await agent.put(f"session/{session}/note", f"mind the {secret}", ttl_seconds=600)
    ended = await stack.loci("reindex")
    assert ended.code == 0, ended.stderr
    assert await agent.turns_found(secret) == [f"We spoke of {secret}."]
    desk = await agent.ask("POST", "/v1/working/search", json={"query": secret})
    assert [one["key"] for one in desk["results"]] == [f"session/{session}/note"]
    assert desk["stages"] == ["bm25"]
