"""LT4, LT19: callers archive and restore memories, revert them, and ask for another enrichment."""

import asyncio
from http import HTTPStatus
from typing import Any

import pytest

from shared.foundation.scope import Scope
from shared.memory.longterm import tombstones
from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.integration.longterm.changed_rows import archive as archive_as_dream
from tests.sql import sql

CONFLICT = HTTPStatus.CONFLICT


async def act(agent: Agent, memory: Json, action: str, *, status: int = HTTPStatus.OK, **body: Any) -> Json:
    path = f"/v1/memories/{memory['id']}/{action}"
    return dict(await agent.request("POST", path, json=body, status=status))


async def has_tombstone(gateway: Gateway, scope: dict[str, str], content: str) -> bool:
    memory_scope = Scope(gateway.tenant, **scope)
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        return content in await tombstones.find_deleted(tx, memory_scope, [content])


async def test_an_archived_memory_is_out_of_searches_and_comes_back_whole(
    keeper: Agent, scope: dict[str, str], module_gateway: Gateway
) -> None:
    memory = await keeper.save("the lantern is red", tags=["t"], category="c", **scope)
    archived = await act(keeper, memory, "archive", reason="it is blue now")
    assert (archived["state"], archived["archive_reason"]) == ("archived", "it is blue now")
    assert (archived["archived_by"], archived["content"]) == ("caller", memory["content"])
    assert await keeper.search_contents("lantern", **scope) == []
    assert await has_tombstone(module_gateway, scope, memory["content"])
    assert (await act(keeper, memory, "archive"))["version"] == archived["version"]
    restored = await act(keeper, memory, "restore", reason="it is red after all")
    assert restored == memory | {"version": 3}
    assert await keeper.search_contents("lantern", **scope) == [memory["content"]]
    assert not await has_tombstone(module_gateway, scope, memory["content"])
    assert (await act(keeper, memory, "restore"))["version"] == 3
    history = [(item["action"], item["reason"]) for item in await keeper.history(memory["id"])]
    assert history == [
        ("created", None),
        ("archived", "it is blue now"),
        ("restored", "it is red after all"),
    ]


async def test_a_save_of_the_text_restores_what_a_caller_archived(
    keeper: Agent, scope: dict[str, str], module_gateway: Gateway
) -> None:
    memory = await keeper.save("the lantern is red", **scope)
    await act(keeper, memory, "archive")
    saved = await keeper.save("The LANTERN is red", tags=["new"], **scope)
    assert (saved["id"], saved["state"], saved["archived_at"]) == (memory["id"], "final", None)
    assert (saved["reinforcement_count"], saved["tags"], saved["archived_by"]) == (2, ["new"], None)
    assert await keeper.search_contents("lantern", **scope) == ["the lantern is red"]
    assert not await has_tombstone(module_gateway, scope, memory["content"])
    assert [item["action"] for item in await keeper.history(memory["id"])] == [
        "created",
        "archived",
        "restored",
        "reinforced",
    ]


async def test_twenty_saves_at_once_restore_one_memory(keeper: Agent, scope: dict[str, str]) -> None:
    memory = await keeper.save("the lantern is red", **scope)
    await act(keeper, memory, "archive")
    saved = await asyncio.gather(*(keeper.save("the lantern is red", **scope) for _ in range(20)))
    assert {item["id"] for item in saved} == {memory["id"]}
    assert (await keeper.memory(memory["id"]))["reinforcement_count"] == 21


async def test_a_memory_that_a_dream_archived_is_not_restored_by_a_save(
    keeper: Agent, scope: dict[str, str], module_gateway: Gateway
) -> None:
    memory = await keeper.save("the lantern is red", **scope)
    await archive_as_dream(module_gateway, memory["id"])
    assert (await keeper.save("the lantern is red", **scope))["id"] != memory["id"]


async def test_a_taken_text_or_key_prevents_restoring(keeper: Agent, scope: dict[str, str]) -> None:
    memory = await keeper.save("the lantern is red", **scope)
    other = await keeper.save("another", **scope)
    keyed = await keeper.save("under a key", key="k", **scope)
    for item in (memory, keyed):
        await act(keeper, item, "archive")
    await keeper.request("PATCH", f"/v1/memories/{other['id']}", json={"content": memory["content"]})
    await keeper.save("a newer one", key="k", **scope)
    assert other["id"] in (await act(keeper, memory, "restore", status=CONFLICT))["detail"]
    await act(keeper, keyed, "restore", status=CONFLICT)
    assert (await keeper.memory(keyed["id"]))["state"] == "archived"


async def test_a_caller_can_neither_archive_nor_revert_what_a_worker_archived_but_restore_it(
    keeper: Agent, scope: dict[str, str], module_gateway: Gateway
) -> None:
    memory, successor = await keeper.save("raw", **scope), await keeper.save("what it became", **scope)
    await archive_as_dream(module_gateway, memory["id"], successor["id"])
    for action, body in (("archive", {}), ("revert", {"version": 1}), ("enrich", {})):
        assert successor["id"] in (await act(keeper, memory, action, status=CONFLICT, **body))["detail"]
    restored = await act(keeper, memory, "restore")
    assert (restored["state"], restored["superseded_by"]) == ("final", [])
    remembered = await sql(
        module_gateway,
        "SELECT memory_id FROM dream_undone_change WHERE group_id LIKE :group",
        group=f"restored/{memory['id']}/%",
    )
    assert {row.memory_id for row in remembered} == {memory["id"], successor["id"]}


async def test_a_memory_returns_to_an_earlier_version_as_a_new_one(
    keeper: Agent, scope: dict[str, str], module_gateway: Gateway
) -> None:
    fields = {"tags": ["t"], "metadata": {"k": "v"}, "valid_from": "2024-01-01T00:00:00Z", "importance": 0.7}
    memory = await keeper.save("the lantern is red", **fields, **scope)
    changes: Json = {"content": "the lantern is blue", "tags": [], "metadata": {}, "valid_from": None}
    await keeper.request("PATCH", f"/v1/memories/{memory['id']}", json=changes)
    reverted = await act(keeper, memory, "revert", version=1)
    assert reverted == memory | {"version": 3, "updated_at": reverted["updated_at"]}
    assert await keeper.search_contents("lantern", **scope) == ["the lantern is red"]
    last = (await keeper.history(memory["id"]))[-1]
    assert (last["action"], last["reason"], last["after"]["version"]) == ("reverted", "to version 1", 3)
    assert (await act(keeper, memory, "revert", version=2, reason="blue"))["content"] == changes["content"]
    await act(keeper, memory, "revert", version=9, status=HTTPStatus.NOT_FOUND)
    await act(keeper, memory, "revert", version=0, status=HTTPStatus.UNPROCESSABLE_ENTITY)


async def test_a_version_whose_text_another_memory_has_now_is_a_conflict(
    keeper: Agent, scope: dict[str, str]
) -> None:
    memory = await keeper.save("red", **scope)
    await keeper.request("PATCH", f"/v1/memories/{memory['id']}", json={"content": "blue"})
    other = await keeper.save("red", **scope)
    assert other["id"] in (await act(keeper, memory, "revert", version=1, status=CONFLICT))["detail"]


@pytest.mark.parametrize("state", ["final", "archived", "keyed"])
async def test_only_what_was_kept_as_written_can_be_enriched_again(
    keeper: Agent, scope: dict[str, str], state: str
) -> None:
    memory = await keeper.save("x", **({"key": "k"} if state == "keyed" else {}), **scope)
    if state == "archived":
        await act(keeper, memory, "archive")
    await act(keeper, memory, "enrich", status=CONFLICT)


async def test_reasons_are_kept_and_checked(
    keeper: Agent, scope: dict[str, str], module_gateway: Gateway
) -> None:
    memory = await keeper.save("red", **scope)
    for reason, status in (("  ", 422), ("x" * 1001, 413)):
        problem = await act(keeper, memory, "archive", status=status, reason=reason)
        assert [violation["field"] for violation in problem["errors"]] == ["reason"]
        path = f"/v1/memories/{memory['id']}"
        await keeper.request("DELETE", path, params={"reason": reason}, status=status)
    await keeper.request("DELETE", path, params={"reason": "she asked for it"})
    statement = "SELECT reason FROM memory_tombstone WHERE memory_id = :id"
    assert [row.reason for row in await sql(module_gateway, statement, id=memory["id"])] == [
        "she asked for it"
    ]
