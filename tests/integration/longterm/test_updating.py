"""LT4: get, update and delete, with a history of who did what, when and why."""

from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

import pytest

from tests import state
from tests.conftest import Gateway
from tests.integration.longterm.test_saving import sql
from tests.journey.agent import Agent

UNKNOWN = "000000000000"


@pytest.fixture
async def inspector(gateway: Gateway) -> AsyncIterator[state.StateInspector]:
    """Read everything that the databases contain."""
    async with state.watching(gateway.resources.settings) as inspector:
        yield inspector


async def change(
    agent: Agent, entry: dict[str, Any], *, status: int = HTTPStatus.OK, **fields: Any
) -> dict[str, Any]:
    return dict(await agent.request("PATCH", f"/v1/memories/{entry['id']}", json=fields, status=status))


async def delete(agent: Agent, entry_id: str) -> dict[str, Any]:
    return dict(await agent.request("DELETE", f"/v1/memories/{entry_id}"))


async def archive(gateway: Gateway, entry: dict[str, Any], *successors: str) -> None:
    statement = (
        "UPDATE memory SET state = 'archived', archived_at = now(), superseded_by = :heirs WHERE id = :id"
    )
    await sql(gateway, statement, heirs=list(successors), id=entry["id"])


async def derive(gateway: Gateway, entry: dict[str, Any], *parents: dict[str, Any]) -> None:
    ids = [parent["id"] for parent in parents]
    await sql(gateway, "UPDATE memory SET derived_from = :ids WHERE id = :id", ids=ids, id=entry["id"])


async def test_an_unknown_id_is_not_found_and_deleting_it_says_so(agent: Agent) -> None:
    await agent.request("GET", f"/v1/memories/{UNKNOWN}", status=HTTPStatus.NOT_FOUND)
    await agent.request("GET", f"/v1/memories/{UNKNOWN}/history", status=HTTPStatus.NOT_FOUND)
    await agent.request(
        "PATCH", f"/v1/memories/{UNKNOWN}", json={"content": "x"}, status=HTTPStatus.NOT_FOUND
    )
    assert await delete(agent, UNKNOWN) == {"id": UNKNOWN, "deleted": False, "content": None}


async def test_an_update_is_returned_found_and_recorded_in_the_history(agent: Agent) -> None:
    entry = await agent.save("Ada likes trains.", category="travel")
    changed = await change(agent, entry, content="Ada likes ferries.", tags=["sea"], importance=0.9)
    assert changed == entry | {
        "content": "Ada likes ferries.",
        "tags": ["sea"],
        "importance": 0.9,
        "effective_importance": 0.9,
        "updated_at": changed["updated_at"],
    }
    assert changed["updated_at"] > entry["created_at"]
    assert await agent.search_contents("ferries") == ["Ada likes ferries."]
    assert await agent.search_contents("trains") == []
    created, updated = await agent.history(entry["id"])
    assert (created["action"], updated["action"]) == ("created", "updated")
    assert created["actor"] == updated["actor"] != ""
    assert created["created_at"] <= updated["created_at"]
    assert (updated["before"]["content"], updated["after"]["content"]) == (
        "Ada likes trains.",
        "Ada likes ferries.",
    )


async def test_fields_that_are_not_named_stay_and_optional_fields_can_be_emptied(agent: Agent) -> None:
    payload = {
        "category": "a/b",
        "tags": ["x"],
        "metadata": {"k": "v"},
        "occurred_at": "2024-01-01T00:00:00Z",
    }
    entry = await agent.save("words", **payload)
    emptied = await change(agent, entry, category=None, occurred_at=None, tags=[], metadata={})
    assert (emptied["category"], emptied["occurred_at"], emptied["tags"], emptied["metadata"]) == (
        None,
        None,
        [],
        {},
    )
    assert emptied["content"] == "words"
    for field in ("content", "tags", "metadata", "importance"):
        problem = await change(agent, entry, status=HTTPStatus.UNPROCESSABLE_ENTITY, **{field: None})
        assert problem["errors"] == [{"field": field, "rule": "must not be null"}]


async def test_a_refused_change_changes_nothing(agent: Agent) -> None:
    entry = await agent.save("words")
    for bad in (
        {"content": " "},
        {"category": "../x"},
        {"tags": ["a\nb"]},
        {"importance": 1.1},
        {"id": UNKNOWN},
    ):
        await change(agent, entry, status=HTTPStatus.UNPROCESSABLE_ENTITY, **bad)
    assert await agent.memory(entry["id"]) == entry
    assert len(await agent.history(entry["id"])) == 1


async def test_an_update_to_the_content_of_another_memory_is_a_conflict_that_names_it(agent: Agent) -> None:
    """LT9."""
    existing, changing = await agent.save("already said"), await agent.save("something else")
    other = await agent.save("something else", user_id="u")
    problem = await change(agent, changing, content="ALREADY  said", status=HTTPStatus.CONFLICT)
    assert existing["id"] in problem["detail"]
    assert (await agent.memory(existing["id"]))["reinforcement_count"] == 1
    assert (await change(agent, other, content="already said"))["content"] == "already said"
    assert (await change(agent, changing, content="Something ELSE"))["content"] == "Something ELSE"


async def test_an_archived_entry_is_read_but_changed_no_more(agent: Agent, gateway: Gateway) -> None:
    raw, successor = await agent.save("raw"), await agent.save("heir")
    await archive(gateway, raw, successor["id"])
    assert (await agent.memory(raw["id"]))["state"] == "archived"
    problem = await change(agent, raw, content="new", status=HTTPStatus.CONFLICT)
    assert successor["id"] in problem["detail"]
    assert (await agent.memory(raw["id"]))["content"] == "raw"


async def test_deleting_echoes_the_content_and_leaves_no_copy_of_it_anywhere(
    agent: Agent, gateway: Gateway, inspector: state.StateInspector
) -> None:
    """LT13: content, history, the lines recalled with turns, stored answers, the index and the window."""
    body = {"content": "the marker sings at noon"}
    keyed: dict[str, Any] = {"headers": {"idempotency-key": "k"}, "status": HTTPStatus.CREATED}
    entry = await agent.request("POST", "/v1/memories", json=body, **keyed)
    await change(agent, entry, tags=["bird"])
    session = await agent.session()
    shown = await agent.context(session, "when does it sing?", idempotency_key="c")
    assert "marker" in shown["messages"][0]["content"]
    assert await delete(agent, entry["id"]) == {
        "id": entry["id"],
        "deleted": True,
        "content": body["content"],
    }
    await gateway.resources.index_writer.close()
    held = await inspector.tenant_state(gateway.tenant)
    assert [name for name, content in held.items() if "marker" in content or "noon" in content] == []
    await agent.request("GET", f"/v1/memories/{entry['id']}", status=HTTPStatus.NOT_FOUND)
    await agent.request(
        "POST", "/v1/memories", json=body, headers=keyed["headers"], status=HTTPStatus.CONFLICT
    )
    assert await delete(agent, entry["id"]) == {"id": entry["id"], "deleted": False, "content": None}
    (stone,) = await sql(gateway, "SELECT memory_id, digest FROM memory_tombstone")
    assert stone.memory_id == entry["id"]
    assert len(bytes(stone.digest)) == 32


async def test_deleting_an_archived_memory_deletes_what_was_derived_only_from_it(
    agent: Agent, gateway: Gateway
) -> None:
    raw, other = await agent.save("raw"), await agent.save("other raw")
    child, grandchild = await agent.save("child"), await agent.save("grandchild")
    mixed, free = await agent.save("of both"), await agent.save("of none")
    await derive(gateway, child, raw)
    await derive(gateway, grandchild, child)
    await derive(gateway, mixed, raw, other)
    await archive(gateway, raw, child["id"], mixed["id"])
    await delete(agent, raw["id"])
    for deleted in (raw, child, grandchild):
        await agent.request("GET", f"/v1/memories/{deleted['id']}", status=HTTPStatus.NOT_FOUND)
    assert (await agent.memory(mixed["id"]))["derived_from"] == [other["id"]]
    assert {(await agent.memory(memory["id"]))["content"] for memory in (other, free)} == {
        "other raw",
        "of none",
    }
    assert await agent.search_contents("child grandchild raw") == ["other raw"]
    assert {row.memory_id for row in await sql(gateway, "SELECT memory_id FROM memory_tombstone")} == {
        memory["id"] for memory in (raw, child, grandchild)
    }


async def test_deleting_a_live_entry_leaves_what_was_derived_from_it(agent: Agent, gateway: Gateway) -> None:
    entry, child = await agent.save("parent"), await agent.save("child")
    await derive(gateway, child, entry)
    await delete(agent, entry["id"])
    assert (await agent.memory(child["id"]))["derived_from"] == []


async def test_deleting_a_successor_takes_its_name_from_the_archived(agent: Agent, gateway: Gateway) -> None:
    raw, memory, two = [await agent.save(words) for words in ("raw", "one", "two")]
    await archive(gateway, raw, memory["id"], two["id"])
    await delete(agent, memory["id"])
    assert (await agent.memory(raw["id"]))["superseded_by"] == [two["id"]]
