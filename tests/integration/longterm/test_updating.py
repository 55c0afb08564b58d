"""LT4: memories are read, updated and deleted, and each change is recorded in their history."""

from http import HTTPStatus
from typing import Any

from tests import state
from tests.agent import Agent, recalled_ids
from tests.conftest import Gateway
from tests.sql import sql

UNKNOWN_ID = "000000000000"


async def update(
    agent: Agent, memory: dict[str, Any], *, status: int = HTTPStatus.OK, **fields: Any
) -> dict[str, Any]:
    return dict(await agent.request("PATCH", f"/v1/memories/{memory['id']}", json=fields, status=status))


async def delete(agent: Agent, memory_id: str) -> dict[str, Any]:
    return dict(await agent.request("DELETE", f"/v1/memories/{memory_id}"))


async def archive(gateway: Gateway, memory: dict[str, Any], *successors: str) -> None:
    statement = (
        "UPDATE memory SET state = 'archived', archived_at = now(), superseded_by = :ids WHERE id = :id"
    )
    await sql(gateway, statement, ids=list(successors), id=memory["id"])


async def derive(gateway: Gateway, memory: dict[str, Any], *parents: dict[str, Any]) -> None:
    ids = [parent["id"] for parent in parents]
    await sql(gateway, "UPDATE memory SET derived_from = :ids WHERE id = :id", ids=ids, id=memory["id"])


async def test_an_unknown_id_is_not_found_and_deleting_it_deletes_nothing(agent: Agent) -> None:
    await agent.request("GET", f"/v1/memories/{UNKNOWN_ID}", status=HTTPStatus.NOT_FOUND)
    await agent.request("GET", f"/v1/memories/{UNKNOWN_ID}/history", status=HTTPStatus.NOT_FOUND)
    await agent.request(
        "PATCH", f"/v1/memories/{UNKNOWN_ID}", json={"content": "x"}, status=HTTPStatus.NOT_FOUND
    )
    assert await delete(agent, UNKNOWN_ID) == {"id": UNKNOWN_ID, "deleted": False, "content": None}


async def test_an_update_is_returned_found_and_recorded_in_the_history(agent: Agent) -> None:
    memory = await agent.save("Ada likes trains.", category="travel")
    updated_memory = await update(agent, memory, content="Ada likes ferries.", tags=["sea"], importance=0.9)
    assert updated_memory == memory | {
        "content": "Ada likes ferries.",
        "tags": ["sea"],
        "importance": 0.9,
        "effective_importance": 0.9,
        "updated_at": updated_memory["updated_at"],
        "version": 2,
    }
    assert updated_memory["updated_at"] > memory["created_at"]
    assert await agent.search_contents("ferries") == ["Ada likes ferries."]
    assert await agent.search_contents("trains") == []
    creation, change = await agent.history(memory["id"])
    assert (creation["action"], change["action"]) == ("created", "updated")
    assert creation["actor"] == change["actor"] != ""
    assert creation["created_at"] <= change["created_at"]
    assert (change["before"]["content"], change["after"]["content"]) == (
        "Ada likes trains.",
        "Ada likes ferries.",
    )


async def test_an_update_keeps_other_fields_and_can_empty_optional_ones(agent: Agent) -> None:
    fields = {
        "category": "a/b",
        "tags": ["x"],
        "metadata": {"k": "v"},
        "occurred_at": "2024-01-01T00:00:00Z",
    }
    memory = await agent.save("words", **fields)
    updated_memory = await update(agent, memory, category=None, occurred_at=None, tags=[], metadata={})
    assert (
        updated_memory["category"],
        updated_memory["occurred_at"],
        updated_memory["tags"],
        updated_memory["metadata"],
    ) == (
        None,
        None,
        [],
        {},
    )
    assert updated_memory["content"] == "words"
    for field in ("content", "tags", "metadata", "importance"):
        problem = await update(agent, memory, status=HTTPStatus.UNPROCESSABLE_ENTITY, **{field: None})
        assert problem["errors"] == [{"field": field, "rule": "must not be null"}]


async def test_an_update_to_the_same_fields_changes_nothing(agent: Agent) -> None:
    fields: dict[str, Any] = {"category": "a/b", "tags": ["x"], "metadata": {"k": "v"}, "importance": 0.7}
    fields["occurred_at"] = "2024-01-01T00:00:00Z"
    memory = await agent.save("Ada likes trains.", **fields)
    same = await update(agent, memory, content="Ada likes trains.", **fields)
    assert same["updated_at"] == memory["updated_at"]
    assert [item["action"] for item in await agent.history(memory["id"])] == ["created"]


async def test_an_update_to_the_same_content_is_not_recalled_again(agent: Agent) -> None:
    memory, session = await agent.save("Ada likes trains."), await agent.session()
    assert recalled_ids(await agent.context(session, "trains?")) == [memory["id"]]
    await update(agent, memory, content="Ada likes trains.", importance=0.9)
    assert recalled_ids(await agent.context(session, "trains?")) == []
    await update(agent, memory, content="Ada likes fast trains.")
    assert recalled_ids(await agent.context(session, "trains?")) == [memory["id"]]


async def test_the_reason_of_an_update_is_kept_in_the_history(agent: Agent) -> None:
    memory = await agent.save("Ada likes trains.")
    await update(agent, memory, content="Ada likes ferries.", reason="she said so")
    assert [item["reason"] for item in await agent.history(memory["id"])] == [None, "she said so"]
    for reason, status in ((" ", 422), ("x" * 1001, 413)):
        problem = await update(agent, memory, status=HTTPStatus(status), reason=reason)
        assert [violation["field"] for violation in problem["errors"]] == ["reason"]
    assert "reason" not in await agent.memory(memory["id"])


async def test_a_refused_update_changes_nothing(agent: Agent) -> None:
    memory = await agent.save("words")
    for fields in (
        {"content": " "},
        {"category": "../x"},
        {"tags": ["a\nb"]},
        {"importance": 1.1},
        {"id": UNKNOWN_ID},
    ):
        await update(agent, memory, status=HTTPStatus.UNPROCESSABLE_ENTITY, **fields)
    assert await agent.memory(memory["id"]) == memory
    assert len(await agent.history(memory["id"])) == 1


async def test_an_update_to_the_content_of_another_memory_is_a_conflict_that_names_it(agent: Agent) -> None:
    """LT9: neither memory is changed."""
    existing, changing = await agent.save("existing text"), await agent.save("another text")
    other = await agent.save("another text", user_id="u")
    problem = await update(agent, changing, content="EXISTING  text", status=HTTPStatus.CONFLICT)
    assert existing["id"] in problem["detail"]
    assert (await agent.memory(existing["id"]))["reinforcement_count"] == 1
    assert (await update(agent, other, content="existing text"))["content"] == "existing text"
    assert (await update(agent, changing, content="Another TEXT"))["content"] == "Another TEXT"


async def test_an_archived_memory_can_be_read_but_not_updated(agent: Agent, gateway: Gateway) -> None:
    raw, successor = await agent.save("raw"), await agent.save("successor")
    await archive(gateway, raw, successor["id"])
    assert (await agent.memory(raw["id"]))["state"] == "archived"
    problem = await update(agent, raw, content="new", status=HTTPStatus.CONFLICT)
    assert successor["id"] in problem["detail"]
    assert (await agent.memory(raw["id"]))["content"] == "raw"


async def test_deleting_returns_the_content_and_leaves_no_copy_in_any_database(
    agent: Agent, gateway: Gateway, inspector: state.StateInspector
) -> None:
    """LT13: no copy in history, recalled lines, stored responses, the index or the conversation window."""
    body = {"content": "the marker sings at noon"}
    keyed_request: dict[str, Any] = {"headers": {"idempotency-key": "k"}, "status": HTTPStatus.CREATED}
    memory = await agent.request("POST", "/v1/memories", json=body, **keyed_request)
    await update(agent, memory, tags=["bird"])
    session = await agent.session()
    context = await agent.context(session, "when does it sing?", idempotency_key="c")
    assert "marker" in context["messages"][0]["content"]
    assert await delete(agent, memory["id"]) == {
        "id": memory["id"],
        "deleted": True,
        "content": body["content"],
    }
    await gateway.resources.index_writer.close()
    content_by_name = await inspector.tenant_state(gateway.tenant)
    assert [
        name for name, content in content_by_name.items() if "marker" in content or "noon" in content
    ] == []
    await agent.request("GET", f"/v1/memories/{memory['id']}", status=HTTPStatus.NOT_FOUND)
    await agent.request(
        "POST", "/v1/memories", json=body, headers=keyed_request["headers"], status=HTTPStatus.CONFLICT
    )
    assert await delete(agent, memory["id"]) == {"id": memory["id"], "deleted": False, "content": None}
    (tombstone,) = await sql(gateway, "SELECT memory_id, digest FROM memory_tombstone")
    assert tombstone.memory_id == memory["id"]
    assert len(bytes(tombstone.digest)) == 32


async def test_deleting_an_archived_memory_deletes_memories_derived_only_from_it(
    agent: Agent, gateway: Gateway
) -> None:
    raw, other = await agent.save("raw"), await agent.save("other raw")
    child, grandchild = await agent.save("child"), await agent.save("grandchild")
    of_both, independent = await agent.save("of both"), await agent.save("of none")
    await derive(gateway, child, raw)
    await derive(gateway, grandchild, child)
    await derive(gateway, of_both, raw, other)
    await archive(gateway, raw, child["id"], of_both["id"])
    await delete(agent, raw["id"])
    for memory in (raw, child, grandchild):
        await agent.request("GET", f"/v1/memories/{memory['id']}", status=HTTPStatus.NOT_FOUND)
    assert (await agent.memory(of_both["id"]))["derived_from"] == [other["id"]]
    assert {(await agent.memory(memory["id"]))["content"] for memory in (other, independent)} == {
        "other raw",
        "of none",
    }
    assert await agent.search_contents("child grandchild raw") == ["other raw"]
    assert {row.memory_id for row in await sql(gateway, "SELECT memory_id FROM memory_tombstone")} == {
        memory["id"] for memory in (raw, child, grandchild)
    }


async def test_deleting_a_live_memory_keeps_memories_derived_from_it(agent: Agent, gateway: Gateway) -> None:
    parent, child = await agent.save("parent"), await agent.save("child")
    await derive(gateway, child, parent)
    await delete(agent, parent["id"])
    assert (await agent.memory(child["id"]))["derived_from"] == []


async def test_deleting_a_successor_removes_its_id_from_the_archived_memory(
    agent: Agent, gateway: Gateway
) -> None:
    raw, first, second = [await agent.save(content) for content in ("raw", "one", "two")]
    await archive(gateway, raw, first["id"], second["id"])
    await delete(agent, first["id"])
    assert (await agent.memory(raw["id"]))["superseded_by"] == [second["id"]]
