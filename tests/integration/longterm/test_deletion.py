"""LT13: a deleted text is not brought back, and erasing a user removes everything of theirs."""

import json
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Any

import pytest

from shared.foundation import config
from tests import state
from tests.agent import Agent
from tests.conftest import Gateway, running_gateway
from tests.draining import process_all
from tests.second_gateway import beside
from tests.sql import sql
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer

FACT, OTHER = "Ada likes trains.", "Bob likes ferries."


@pytest.fixture
async def model_gateway(
    make_settings: Callable[..., config.Settings], database: dict[str, str], models: ModelServer, tenant: str
) -> AsyncIterator[Gateway]:
    """Yield a gateway with a language model that enriches memories, and an embedding model."""
    endpoints = {"embedding_base_url": models.url, "embedding_model": "e", "embedding_dimension": 64}
    settings = make_settings(**database, llm_base_url=models.url, llm_model="m", **endpoints)
    async with running_gateway(settings, tenant) as gateway:
        yield gateway


def model_reply(*contents: str) -> Reply:
    return Reply(json.dumps([{"content": content} for content in contents]))


async def live_contents(gateway: Gateway) -> set[str]:
    return {row.content for row in await sql(gateway, "SELECT content FROM memory WHERE archived_at IS NULL")}


async def delete(agent: Agent, memory_id: str) -> None:
    assert (await agent.request("DELETE", f"/v1/memories/{memory_id}"))["deleted"]


async def save_and_delete(agent: Agent, content: str, **scope: Any) -> None:
    """Save a memory without enrichment, and delete it."""
    await delete(agent, (await agent.save(content, enrich=False, **scope))["id"])


async def test_enrichment_does_not_bring_back_a_deleted_text(
    model_gateway: Gateway, models: ModelServer
) -> None:
    agent = Agent(model_gateway.client, model_gateway.tenant)
    await save_and_delete(agent, FACT)
    models.chat_default = model_reply("ada LIKES\ntrains.", OTHER)
    raw = await agent.save("a note on likes")
    await process_all(model_gateway.resources)
    assert await live_contents(model_gateway) == {OTHER}
    assert (await agent.memory(raw["id"]))["state"] == "archived"


async def test_a_raw_memory_whose_only_enriched_text_was_deleted_before_is_kept_raw(
    model_gateway: Gateway, models: ModelServer
) -> None:
    agent = Agent(model_gateway.client, model_gateway.tenant)
    await save_and_delete(agent, FACT)
    models.chat_default = model_reply(FACT)
    raw = await agent.save("a note on likes")
    await process_all(model_gateway.resources)
    assert await live_contents(model_gateway) == {"a note on likes"}
    assert (await agent.memory(raw["id"]))["state"] == "kept-raw"


async def test_a_tombstone_applies_to_its_own_scope_only(model_gateway: Gateway, models: ModelServer) -> None:
    agent = Agent(model_gateway.client, model_gateway.tenant)
    await save_and_delete(agent, FACT, user_id="u")
    models.chat_default = model_reply(FACT)
    for scope in ({}, {"user_id": "v"}, {"agent_id": "b", "user_id": "u"}):
        await agent.save("a note on likes", **scope)
    await agent.save("a note on likes", user_id="u")
    await process_all(model_gateway.resources)
    rows = await sql(model_gateway, "SELECT agent_id, user_id, content FROM memory WHERE archived_at IS NULL")
    assert {(row.agent_id, row.user_id): row.content for row in rows} == {
        ("default", None): FACT,
        ("default", "v"): FACT,
        ("b", "u"): FACT,
        ("default", "u"): "a note on likes",
    }


async def test_an_explicit_save_removes_the_tombstone(model_gateway: Gateway, models: ModelServer) -> None:
    agent = Agent(model_gateway.client, model_gateway.tenant)
    await save_and_delete(agent, FACT)
    restored = await agent.save(FACT, enrich=False)
    assert await sql(model_gateway, "SELECT 1 FROM memory_tombstone") == []
    models.chat_default = model_reply(FACT)
    await agent.save("a note on likes")
    await process_all(model_gateway.resources)
    assert (await agent.memory(restored["id"]))["reinforcement_count"] == 2


async def test_an_enrichment_is_dropped_if_its_raw_memory_was_deleted_meanwhile(
    model_gateway: Gateway, models: ModelServer
) -> None:
    agent = Agent(model_gateway.client, model_gateway.tenant)
    raw = await agent.save("a note on likes")

    models.chat_default = model_reply(FACT)
    model = model_gateway.resources.language_model
    assert model is not None
    complete = model.complete

    async def delete_after_reply(*question: Any) -> Any:
        model.complete = complete  # type: ignore[method-assign]
        reply = await complete(*question)
        await delete(agent, raw["id"])
        return reply

    model.complete = delete_after_reply  # type: ignore[assignment]
    await process_all(model_gateway.resources)
    assert len(models.chat_calls) == 1
    assert await live_contents(model_gateway) == set()
    assert await sql(model_gateway, "SELECT 1 FROM job WHERE pipeline = 'enrichment'") == []


async def plant_users(agent: Agent) -> dict[str, str]:
    """Store every kind of record for two users of two agents; return session and memory ids by name."""
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
    common_memory = await agent.save("marker without a user", agent_id="a", source=source)
    other_memory = await agent.save(
        "source of another user", agent_id="a", source={"session_id": ids["bob a"]}
    )
    return ids | {"common": common_memory["id"], "other": other_memory["id"]}


async def records_with(inspector: state.StateInspector, gateway: Gateway, marker: str) -> list[str]:
    await gateway.resources.index_writer.close()
    content_by_name = await inspector.tenant_state(gateway.tenant)
    return [name for name, content in content_by_name.items() if marker in content]


async def test_erasing_a_user_removes_all_of_their_records_and_none_of_others(
    agent: Agent, gateway: Gateway, inspector: state.StateInspector
) -> None:
    ids = await plant_users(agent)
    others_count = len(await records_with(inspector, gateway, "sparrow"))
    receipt = await agent.request("DELETE", "/v1/users/ada")
    await process_all(gateway.resources)
    assert await records_with(inspector, gateway, "marker") == []
    assert len(await records_with(inspector, gateway, "sparrow")) == others_count
    assert receipt["user_id"] == "ada"
    assert receipt["stores"] == {"postgres": "done", "redis": "done", "qdrant": "done"}
    erased_counts = receipt["erased"]
    assert (
        erased_counts["memories"],
        erased_counts["sessions"],
        erased_counts["turns"],
        erased_counts["working_entries"],
    ) == (
        3,
        2,
        4,
        2,
    )
    assert (erased_counts["history"], erased_counts["archived"]) == (3, 0)
    assert erased_counts["stored_responses"] >= 2
    for session_name in ("ada a", "ada b"):
        await agent.request("GET", f"/v1/sessions/{ids[session_name]}", status=HTTPStatus.NOT_FOUND)
    await agent.request("GET", f"/v1/memories/{ids['common']}", status=HTTPStatus.NOT_FOUND)
    assert (await agent.memory(ids["other"]))["content"] == "source of another user"
    assert await agent.request("DELETE", "/v1/users/ada") == receipt, "the same receipt"


async def test_erasing_while_the_index_is_unavailable_reports_pending_and_deletes_points_later(
    agent: Agent, gateway: Gateway, inspector: state.StateInspector, unused_url: str
) -> None:
    await plant_users(agent)
    await gateway.resources.index_writer.close()
    async with beside(gateway, qdrant_url=unused_url) as without_index:
        receipt = await without_index.request("DELETE", "/v1/users/ada")
        assert receipt["stores"] == {"postgres": "done", "redis": "done", "qdrant": "pending"}
        assert await agent.search_contents("marker", agent_id="a", user_id="ada") == [], (
            "hits are read from Postgres, where the memory is deleted"
        )
    assert [
        name
        for name in await records_with(inspector, gateway, "marker")
        if not name.startswith(inspector.prefix)
    ] == []
    assert await records_with(inspector, gateway, "marker") != []
    await process_all(gateway.resources)
    assert await records_with(inspector, gateway, "marker") == []


async def test_erasing_a_user_requires_the_admin_right(agent: Agent, gateway: Gateway) -> None:
    await agent.save("marker", user_id="ada")
    async with await gateway.new_client(rights=["read", "write"]) as client:
        assert (await client.delete("/v1/users/ada")).status_code == HTTPStatus.FORBIDDEN
    async with await gateway.new_client(f"{gateway.tenant}-other") as client:
        receipt = (await client.delete("/v1/users/ada")).json()
    assert not any(receipt["erased"].values())
    assert await agent.search_contents("marker", user_id="ada") == ["marker"]
