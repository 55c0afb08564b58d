"""LT13: what was deleted on purpose stays away, and a user who is erased leaves nothing anywhere."""

import json
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Any

import pytest

from shared.foundation import config
from tests import state
from tests.conftest import Gateway, running_gateway
from tests.draining import drain, make_due
from tests.integration.longterm.conftest import beside
from tests.integration.longterm.test_saving import sql
from tests.journey.agent import Agent
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer

FACT, OTHER = "Ada likes trains.", "Bob likes ferries."


@pytest.fixture
async def enriching(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> AsyncIterator[Gateway]:
    """A gateway whose notes are rewritten by a model, and embedded."""
    endpoints = {"embedding_base_url": models.url, "embedding_model": "e", "embedding_dimension": 64}
    settings = make_settings(apart=True, llm_base_url=models.url, llm_model="m", **endpoints)
    async with running_gateway(settings, tenant) as gateway:
        yield gateway


def says(*contents: str) -> Reply:
    return Reply(json.dumps([{"content": content} for content in contents]))


async def work(gateway: Gateway) -> None:
    await gateway.resources.index_writer.close()
    await make_due(gateway.resources)
    await drain(gateway.resources)


async def live(gateway: Gateway) -> set[str]:
    return {row.content for row in await sql(gateway, "SELECT content FROM memory WHERE archived_at IS NULL")}


async def delete(agent: Agent, entry_id: str) -> None:
    assert (await agent.request("DELETE", f"/v1/memories/{entry_id}"))["deleted"]


async def forget(agent: Agent, content: str, **scope: Any) -> None:
    """Save a fact as it is, and delete it."""
    await delete(agent, (await agent.save(content, enrich=False, **scope))["id"])


async def test_enrichment_does_not_bring_back_what_was_deleted(
    enriching: Gateway, models: ModelServer
) -> None:
    agent = Agent(enriching.client, enriching.tenant)
    await forget(agent, FACT)
    models.chat_default = says("ada LIKES\ntrains.", OTHER)
    raw = await agent.save("a note on likes")
    await work(enriching)
    assert await live(enriching) == {OTHER}
    assert (await agent.memory(raw["id"]))["state"] == "archived"


async def test_a_raw_memory_whose_only_result_was_deleted_before_is_kept_raw(
    enriching: Gateway, models: ModelServer
) -> None:
    agent = Agent(enriching.client, enriching.tenant)
    await forget(agent, FACT)
    models.chat_default = says(FACT)
    raw = await agent.save("a note on likes")
    await work(enriching)
    assert await live(enriching) == {"a note on likes"}
    assert (await agent.memory(raw["id"]))["state"] == "kept-raw"


async def test_a_tombstone_holds_in_its_own_scope_only(enriching: Gateway, models: ModelServer) -> None:
    agent = Agent(enriching.client, enriching.tenant)
    await forget(agent, FACT, user_id="u")
    models.chat_default = says(FACT)
    for scope in ({}, {"user_id": "v"}, {"agent_id": "b", "user_id": "u"}):
        await agent.save("a note on likes", **scope)
    await agent.save("a note on likes", user_id="u")
    await work(enriching)
    rows = await sql(enriching, "SELECT agent_id, user_id, content FROM memory WHERE archived_at IS NULL")
    assert {(row.agent_id, row.user_id): row.content for row in rows} == {
        ("default", None): FACT,
        ("default", "v"): FACT,
        ("b", "u"): FACT,
        ("default", "u"): "a note on likes",
    }


async def test_an_explicit_save_removes_the_tombstone(enriching: Gateway, models: ModelServer) -> None:
    agent = Agent(enriching.client, enriching.tenant)
    await forget(agent, FACT)
    repeated = await agent.save(FACT, enrich=False)
    assert await sql(enriching, "SELECT 1 FROM memory_tombstone") == []
    models.chat_default = says(FACT)
    await agent.save("a note on likes")
    await work(enriching)
    assert (await agent.memory(repeated["id"]))["reinforcement_count"] == 2


async def test_a_result_whose_source_was_deleted_meanwhile_is_dropped(
    enriching: Gateway, models: ModelServer
) -> None:
    agent = Agent(enriching.client, enriching.tenant)
    raw = await agent.save("a note on likes")

    models.chat_default = says(FACT)
    model = enriching.resources.language_model
    assert model is not None
    ask = model.complete

    async def asked(system: str, user: str) -> Any:
        reply = await ask(system, user)
        await delete(agent, raw["id"])
        return reply

    model.complete = asked  # type: ignore[method-assign]
    await work(enriching)
    assert len(models.chat_calls) == 1
    assert await live(enriching) == set()
    assert await sql(enriching, "SELECT 1 FROM job WHERE pipeline = 'enrichment'") == []


async def plant_users(agent: Agent) -> dict[str, str]:
    """Let two users say things to two agents, in every kind of record."""
    ids = {}
    for user, marker in (("ada", "marker"), ("bob", "sparrow")):
        for name in ("a", "b"):
            scope = {"agent_id": name, "user_id": user}
            await agent.save(f"{marker} memory of {name}", **scope, tags=[marker], category=f"birds/{marker}")
            session = await agent.session(**scope)
            await agent.append_turn(session, f"{marker} said to {name}")
            await agent.context(session, f"{marker} asked {name}", idempotency_key=session)
            await agent.put(f"session/{session}/note", f"{marker} note")
            ids[f"{user} {name}"] = session
    source = {"session_id": ids["ada a"], "seq": 1}
    common = await agent.save("marker told in common", agent_id="a", source=source)
    kept = await agent.save("told by nobody", agent_id="a", source={"session_id": ids["bob a"]})
    return ids | {"common": common["id"], "kept": kept["id"]}


@pytest.fixture
async def inspector(gateway: Gateway) -> AsyncIterator[state.StateInspector]:
    """Read everything that the databases contain."""
    async with state.watching(gateway.resources.settings) as inspector:
        yield inspector


async def held(inspector: state.StateInspector, gateway: Gateway, marker: str) -> list[str]:
    await gateway.resources.index_writer.close()
    everything = await inspector.tenant_state(gateway.tenant)
    return [name for name, content in everything.items() if marker in content]


async def test_erasing_a_user_leaves_nothing_of_theirs_and_all_of_others(
    agent: Agent, gateway: Gateway, inspector: state.StateInspector
) -> None:
    ids = await plant_users(agent)
    others = len(await held(inspector, gateway, "sparrow"))
    receipt = await agent.request("DELETE", "/v1/users/ada")
    await work(gateway)
    assert await held(inspector, gateway, "marker") == []
    assert len(await held(inspector, gateway, "sparrow")) == others
    assert receipt["user_id"] == "ada"
    assert receipt["stores"] == {"postgres": "done", "redis": "done", "qdrant": "done"}
    payload = receipt["erased"]
    assert (payload["memories"], payload["sessions"], payload["turns"], payload["working_entries"]) == (
        3,
        2,
        4,
        2,
    )
    assert (payload["history"], payload["archived"]) == (3, 0)
    assert payload["stored_responses"] >= 2
    for deleted in ("ada a", "ada b"):
        await agent.request("GET", f"/v1/sessions/{ids[deleted]}", status=HTTPStatus.NOT_FOUND)
    await agent.request("GET", f"/v1/memories/{ids['common']}", status=HTTPStatus.NOT_FOUND)
    assert (await agent.memory(ids["kept"]))["content"] == "told by nobody"
    repeated = await agent.request("DELETE", "/v1/users/ada")
    assert not any(repeated["erased"].values())


async def test_while_the_index_is_unavailable_the_receipt_says_pending_and_points_are_deleted_later(
    agent: Agent, gateway: Gateway, inspector: state.StateInspector, unused_url: str
) -> None:
    await plant_users(agent)
    await gateway.resources.index_writer.close()
    async with beside(gateway, qdrant_url=f"http://{unused_url}") as partly:
        receipt = await partly.request("DELETE", "/v1/users/ada")
        assert receipt["stores"] == {"postgres": "done", "redis": "done", "qdrant": "pending"}
        assert await agent.search_contents("marker", agent_id="a", user_id="ada") == [], (
            "what is read again is gone"
        )
    assert [
        name for name in await held(inspector, gateway, "marker") if not name.startswith(inspector.prefix)
    ] == []
    assert await held(inspector, gateway, "marker") != []
    await work(gateway)
    assert await held(inspector, gateway, "marker") == []


async def test_erasing_a_user_needs_the_right_to(agent: Agent, gateway: Gateway) -> None:
    await agent.save("marker", user_id="ada")
    async with await gateway.new_client(rights=["read", "write"]) as client:
        assert (await client.delete("/v1/users/ada")).status_code == HTTPStatus.FORBIDDEN
    async with await gateway.new_client(f"{gateway.tenant}-other") as client:
        payload = (await client.delete("/v1/users/ada")).json()
    assert not any(payload["erased"].values())
    assert await agent.search_contents("marker", user_id="ada") == ["marker"]
