"""MO4: an explicit search hides nothing, whatever was learnt from other records; a context may."""

from collections.abc import AsyncIterator, Callable

import pytest

from shared.foundation import config
from shared.foundation.stages import SEARCHABLE_KINDS
from shared.search import floor
from shared.search.index import generations
from tests.agent import Agent, find_block
from tests.conftest import Gateway, running_gateway
from tests.draining import drain, make_due
from tests.standins.models import ModelServer

TEXT = "The heron nests by the old weir."
MESSAGE = "Is there anything about a heron that somebody with binoculars might possibly enjoy watching?"
"""It shares one word of many with the text: less than any floor that was learnt."""
HIGH = 0.91
_ROUNDS = 4
"""A document is parsed, stored, indexed and embedded."""


@pytest.fixture(params=["embedder", "keywords alone"])
async def agent(
    request: pytest.FixtureRequest,
    make_settings: Callable[..., config.Settings],
    models: ModelServer,
    tenant: str,
) -> AsyncIterator[Agent]:
    """An agent that has saved one text of every kind, in an index whose floors were learnt from others."""
    with_model = {"embedding_base_url": models.url, "embedding_model": "stand-in"}
    settings = make_settings(apart=True, **(with_model if request.param == "embedder" else {}))
    async with running_gateway(settings, tenant) as gateway:
        agent = Agent(gateway.client, tenant)
        await _save_all_kinds(agent)
        await _process_all(gateway)
        await _learn_high_floors(gateway)
        yield agent


async def _save_all_kinds(agent: Agent) -> None:
    await agent.save(TEXT, enrich=False)
    session = await agent.session()
    await agent.append_turn(session, TEXT)
    path = f"/v1/sessions/{session}/observations"
    await agent.request("POST", path, json={"kind": "fact", "content": TEXT}, status=201)
    await agent.put("shared/bird", TEXT, ttl_seconds=600)
    await agent.request("PUT", "/v1/skills/bird", json={"summary": TEXT, "content": TEXT})
    files = {"file": ("bird.txt", TEXT.encode(), "text/plain")}
    await agent.request("POST", "/v1/documents", files=files, status=202)


async def _process_all(gateway: Gateway) -> None:
    await gateway.resources.index_writer.close()
    for _ in range(_ROUNDS):
        await make_due(gateway.resources)
        await drain(gateway.resources)


async def _learn_high_floors(gateway: Gateway) -> None:
    async with gateway.resources.postgres.across_tenants() as tx:
        for kind in SEARCHABLE_KINDS:
            live = await generations.get_live(tx, kind)
            assert live is not None
            learnt = HIGH if live.model else None
            await generations.set_floor(tx, live.id, learnt, 2 * floor.MIN_RECORDS)
    gateway.resources.search_index._live.clear()  # instead of waiting until it is read again


KINDS = ("memories", "turns", "observations", "working", "skills", "documents")
TOOLS = (
    "memory_search",
    "search_memory",
    "conversation_search",
    "search_working_memory",
    "skill_search",
    "search_business_context",
)


async def test_every_search_and_search_tool_finds_what_is_nearest_whatever_floor_was_learnt(
    agent: Agent,
) -> None:
    found = {kind: await _search(agent, f"/v1/{kind}/search") for kind in KINDS}
    assert found == dict.fromkeys(KINDS, (1, []))
    answers = {tool: await _call(agent, tool) for tool in TOOLS}
    assert [tool for tool, answer in answers.items() if "bird" not in answer and "weir" not in answer] == []


async def _search(agent: Agent, path: str) -> tuple[int, list[str]]:
    found = await agent.request("POST", path, json={"query": MESSAGE})
    return len(found["results"]), found["degraded"]


async def _call(agent: Agent, tool: str) -> str:
    return str(await agent.request("POST", f"/v1/tools/{tool}", json={"arguments": {"query": MESSAGE}}))


async def test_a_context_shows_neither_memories_nor_past_turns_that_have_nothing_to_do_with_the_message(
    agent: Agent,
) -> None:
    session = await agent.session()
    await agent.append_turn(session, "Hello.")  # the first turn of a session gets the newest memories
    context = await agent.context(session, MESSAGE, blocks=["recalled", "past_turns"])
    assert (context["recalled"], find_block(context, "past_turns"), context["degraded"]) == ([], None, [])
    assert len((await agent.context(session, MESSAGE, min_similarity=-1))["recalled"]) == 1
    same = await agent.context(session, TEXT, blocks=["recalled", "past_turns"])
    assert "weir" in str(find_block(same, "past_turns"))
