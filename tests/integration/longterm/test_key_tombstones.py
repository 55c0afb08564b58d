"""LT13, LT17: which texts get a tombstone where a memory with a key says the same."""

import asyncio

import pytest

from shared.lifecycle.delete_memory import delete_rows
from shared.memory.longterm import queries
from tests.agent import Agent
from tests.conftest import Gateway
from tests.integration.longterm.by_key import CREATED, Scope, delete, get, put
from tests.locks import wait_until_blocked
from tests.sql import sql


async def tombstones(gateway: Gateway, scope: Scope) -> int:
    statement = "SELECT 1 FROM memory_tombstone WHERE agent_id = :agent_id"
    return len(await sql(gateway, statement, agent_id=scope["agent_id"]))


async def test_deleting_a_key_leaves_a_tombstone_only_if_no_live_memory_says_the_same(
    keeper: Agent, scope: Scope, module_gateway: Gateway
) -> None:
    text = "The gate opens at eight."
    for key in ("a", "b"):
        await put(keeper, scope, key, text, status=CREATED)
    assert (await delete(keeper, scope, "a"))["deleted"] is True
    assert await tombstones(module_gateway, scope) == 0
    deleted = await delete(keeper, scope, "b")
    assert (deleted["content"], deleted["deleted"]) == (text, True)
    assert await tombstones(module_gateway, scope) == 1
    await put(keeper, scope, "c", text.upper(), status=CREATED)
    assert await tombstones(module_gateway, scope) == 0


@pytest.mark.parametrize("way", ["id", "filter", "archive"])
async def test_what_is_deleted_without_a_key_gets_a_tombstone_though_a_key_holds_its_text(
    keeper: Agent, scope: Scope, module_gateway: Gateway, way: str
) -> None:
    """The key goes on saying it, deliberately; no worker is to say it beside the key once more."""
    text = "The gate opens at nine."
    await put(keeper, scope, "a", text, status=CREATED)
    plain = await keeper.save(text, **scope)
    if way == "filter":
        body = {"filter": {"field": "id", "op": "eq", "value": plain["id"]}, **scope}
        await keeper.request("POST", "/v1/memories/delete", json=body)
    elif way == "archive":
        await keeper.request("POST", f"/v1/memories/{plain['id']}/archive")
    else:
        await keeper.request("DELETE", f"/v1/memories/{plain['id']}")
    assert await tombstones(module_gateway, scope) == 1
    assert await keeper.search_contents("gate nine", **scope) == [text]
    assert (await keeper.save(text, **scope))["key"] is None
    assert await tombstones(module_gateway, scope) == 0


@pytest.mark.parametrize("named_by", ["key", "filter"])
async def test_a_deletion_waits_for_another_one_of_the_same_text_and_leaves_the_tombstone(
    keeper: Agent, scope: Scope, module_gateway: Gateway, named_by: str
) -> None:
    """Else each of them would take the memory of the other for a live one that says the same."""
    for key in ("a", "b"):
        await put(keeper, scope, key, "The gate opens at eight.", status=CREATED)
    other = await get(keeper, scope, "a")
    body = {"filter": {"field": "key", "op": "eq", "value": "b"}, **scope}

    async def delete_b() -> None:
        if named_by == "filter":
            await keeper.request("POST", "/v1/memories/delete", json=body)
        else:
            await delete(keeper, scope, "b")

    tenant = module_gateway.tenant
    async with module_gateway.resources.transaction(tenant) as tx:
        memories = await queries.lock(tx, [other["id"]])
        deletion = asyncio.ensure_future(delete_b())
        await wait_until_blocked(tx, deletion)
        await delete_rows(tx, module_gateway.resources, memories)
    await deletion
    assert await tombstones(module_gateway, scope) == 1
