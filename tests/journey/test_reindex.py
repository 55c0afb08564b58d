"""`loci reindex` while an agent searches, saves and deletes."""

import asyncio
from http import HTTPStatus
from subprocess import CompletedProcess

from tests.agent import Agent, random_word
from tests.journey.stack import ForkedStack

SAVED_BEFORE = 200


async def test_ix2_a_reindex_loses_no_search_no_save_and_no_delete(stack: ForkedStack, agent: Agent) -> None:
    secret = random_word()
    contents = [f"The {secret} stone {n} lies in row {random_word()}." for n in range(SAVED_BEFORE)]
    drafts = [{"content": text} for text in contents]
    await agent.request("POST", "/v1/memories/batch", json={"memories": drafts}, status=HTTPStatus.CREATED)
    to_delete = await agent.save(f"The {secret} pebble is to go.")
    rebuilding = asyncio.create_task(stack.loci("reindex", "--kind", "memory"))
    saved_meanwhile = await _search_and_save(agent, rebuilding, contents, to_delete["id"])
    result = await rebuilding
    assert result.returncode == 0, result.stderr
    assert "the new index is in use" in result.stderr
    assert len(saved_meanwhile) >= 5
    await agent.wait_until_idle()
    for text in [*contents[::20], *saved_meanwhile]:
        response = await agent.search(text.split()[-1])
        assert [memory["content"] for memory in response["results"]] == [text]
        assert (response["stages"], response["degraded"]) == (["bm25"], [])
    assert await agent.search_contents("pebble") == []


async def _search_and_save(
    agent: Agent, rebuilding: asyncio.Task[CompletedProcess[str]], contents: list[str], to_delete: str
) -> list[str]:
    """Search and save until the index is rebuilt, and delete one memory. Return the saved contents."""
    saved: list[str] = []
    while not rebuilding.done():
        expected = contents[len(saved) % len(contents)]
        response = await agent.search(expected.split()[-1])
        found_contents = [memory["content"] for memory in response["results"]]
        assert (found_contents, response["degraded"]) == ([expected], [])
        name = random_word()
        content = f"Meanwhile there was {name}"
        await agent.save(content)
        assert await agent.search_contents(name) == [content]
        saved.append(content)
        if len(saved) == 3:
            await agent.request("DELETE", f"/v1/memories/{to_delete}")
    return saved


async def test_ix2_turns_and_working_memory_are_rebuilt_too(stack: ForkedStack, agent: Agent) -> None:
    secret, session = random_word(), await agent.session()
    await agent.append_turn(session, f"We spoke of {secret}.")
    await agent.put(f"session/{session}/note", f"mind the {secret}", ttl_seconds=600)
    result = await stack.loci("reindex")
    assert result.returncode == 0, result.stderr
    assert await agent.search_turn_contents(secret) == [f"We spoke of {secret}."]
    response = await agent.request("POST", "/v1/working/search", json={"query": secret})
    assert [entry["key"] for entry in response["results"]] == [f"session/{session}/note"]
    assert response["stages"] == ["bm25"]
