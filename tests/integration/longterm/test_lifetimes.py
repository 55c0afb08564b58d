"""LT18 as fields: validity is stored, a closed memory is no duplicate, and an expired one is gone."""

from http import HTTPStatus
from typing import Any

import pytest

from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.integration.longterm.changed_rows import archive
from tests.sql import sql

CONFLICT, REFUSED = HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY
PAST, SOON, FAR = "2020-01-01T00:00:00Z", "2998-01-01T00:00:00Z", "2999-01-01T00:00:00Z"
BY_KEY = "/v1/memories/by-key"


async def change(agent: Agent, memory: Json, *, status: int = HTTPStatus.OK, **fields: Any) -> Json:
    return dict(await agent.request("PATCH", f"/v1/memories/{memory['id']}", json=fields, status=status))


async def expire(gateway: Gateway, memory_id: str) -> None:
    """Let the expiry of a memory be over, as time would."""
    statement = "UPDATE memory SET expires_at = now() - interval '1 second' WHERE id = :id"
    await sql(gateway, statement, id=memory_id)


async def test_times_are_stored_answered_and_changed(keeper: Agent, scope: dict[str, str]) -> None:
    fields = {"valid_from": PAST, "valid_until": SOON, "expires_at": FAR}
    memory = await keeper.save("Ada lives in Bonn.", **fields, **scope)
    assert {name: memory[name] for name in fields} == fields
    keyed = await keeper.request(
        "PUT", BY_KEY, params={"key": "k", **scope}, json={"content": "x", **fields}, status=201
    )
    assert {name: keyed[name] for name in fields} == fields
    changed = await change(keeper, memory, valid_until=None, expires_at=None)
    assert [changed[name] for name in fields] == [PAST, None, None]
    history = await keeper.history(memory["id"])
    assert [history[-1]["before"][name] for name in fields] == [PAST, SOON, FAR]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"valid_from": SOON, "valid_until": PAST}, "valid_until"),
        ({"valid_from": SOON, "valid_until": SOON}, "valid_until"),
        ({"expires_at": PAST}, "expires_at"),
        ({"valid_from": "0001-01-01T00:00:00Z"}, "valid_from"),
        ({"valid_until": "9999-01-01T00:00:00Z"}, "valid_until"),
    ],
)
async def test_times_that_make_no_sense_are_refused(
    keeper: Agent, scope: dict[str, str], fields: Json, field: str
) -> None:
    body = {"content": "x", **fields, **scope}
    problem = await keeper.request("POST", "/v1/memories", json=body, status=REFUSED)
    assert [violation["field"] for violation in problem["errors"]] == [field]


async def test_a_change_is_checked_with_what_is_stored(keeper: Agent, scope: dict[str, str]) -> None:
    memory = await keeper.save("x", valid_from=SOON, **scope)
    problem = await change(keeper, memory, valid_until=PAST, status=REFUSED)
    assert [violation["field"] for violation in problem["errors"]] == ["valid_until"]
    assert (await keeper.memory(memory["id"]))["version"] == 1


async def test_a_closed_memory_is_no_duplicate_and_can_be_reopened_only_without_one(
    keeper: Agent, scope: dict[str, str]
) -> None:
    old = await keeper.save("Ada lives in Bonn.", **scope)
    await change(keeper, old, valid_until=PAST)
    new = await keeper.save("Ada lives in Bonn.", **scope)
    assert new["id"] != old["id"]
    assert (await keeper.save("ada lives in bonn.", **scope))["id"] == new["id"]
    problem = await change(keeper, old, valid_until=None, status=CONFLICT)
    assert new["id"] in problem["detail"]
    await keeper.request("DELETE", f"/v1/memories/{new['id']}")
    assert (await change(keeper, old, valid_until=None))["valid_until"] is None
    assert (await keeper.save("Ada lives in Bonn.", **scope))["id"] == old["id"]


async def test_two_saves_that_are_closed_from_the_start_are_two_memories(
    keeper: Agent, scope: dict[str, str]
) -> None:
    items = [{"content": "Ada was in Rome.", "valid_until": PAST, **scope}] * 2
    body = {"memories": items}
    results = (await keeper.request("POST", "/v1/memories/batch", json=body, status=201))["results"]
    assert len({result["id"] for result in results}) == 2


async def test_a_live_closed_memory_names_its_successor_and_an_open_one_none(
    keeper: Agent, scope: dict[str, str]
) -> None:
    old, new = await keeper.save("Bonn", **scope), await keeper.save("Rome", **scope)
    foreign = await keeper.save("Oslo", agent_id=scope["agent_id"])
    for successors in ([new["id"]],):
        await change(keeper, old, superseded_by=successors, status=REFUSED)
    for successors in ([old["id"]], [foreign["id"]], ["000000000000"]):
        problem = await change(keeper, old, valid_until=PAST, superseded_by=successors, status=REFUSED)
        assert [violation["field"] for violation in problem["errors"]] == ["superseded_by"]
    closed = await change(keeper, old, valid_until=PAST, superseded_by=[new["id"]])
    assert (closed["state"], closed["superseded_by"]) == ("final", [new["id"]])
    assert (await change(keeper, old, importance=0.9))["superseded_by"] == [new["id"]]
    assert (await keeper.save("Bonn", **scope))["id"] not in {old["id"], new["id"]}


async def test_reopening_drops_the_successors(keeper: Agent, scope: dict[str, str]) -> None:
    old, new = await keeper.save("Bonn", **scope), await keeper.save("Rome", **scope)
    await change(keeper, old, valid_until=PAST, superseded_by=[new["id"]])
    assert (await change(keeper, old, valid_until=None))["superseded_by"] == []


async def test_a_chain_of_successors_does_not_lead_a_save_to_a_closed_memory(
    keeper: Agent, scope: dict[str, str], module_gateway: Gateway
) -> None:
    raw, successor, next_fact = [await keeper.save(text, **scope) for text in ("raw", "Bonn", "Rome")]
    await archive(module_gateway, raw["id"], successor["id"])
    await change(keeper, successor, valid_until=PAST, superseded_by=[next_fact["id"]])
    saved = await keeper.save("raw", **scope)
    assert saved["id"] not in {raw["id"], successor["id"], next_fact["id"]}
    assert (await keeper.memory(next_fact["id"]))["reinforcement_count"] == 1


async def test_a_save_widens_the_times_of_what_says_the_same(keeper: Agent, scope: dict[str, str]) -> None:
    first = await keeper.save("x", valid_from=SOON, expires_at=SOON, **scope)
    second = await keeper.save("x", valid_from=PAST, expires_at=FAR, **scope)
    assert (second["id"], second["valid_from"], second["expires_at"]) == (first["id"], PAST, FAR)
    assert second["version"] == 2
    third = await keeper.save("x", **scope)
    assert (third["id"], third["valid_from"], third["expires_at"]) == (first["id"], None, None)


async def test_an_expired_memory_is_gone_before_the_sweep_and_frees_its_text_and_key(
    keeper: Agent, scope: dict[str, str], module_gateway: Gateway
) -> None:
    plain = await keeper.save("the lantern is red", expires_at=FAR, tags=["old"], **scope)
    name = {"key": "k", "namespace": "n"}
    keyed = await keeper.save("the lantern is blue", expires_at=FAR, **name, **scope)
    for memory in (plain, keyed):
        await expire(module_gateway, memory["id"])
    session = await keeper.session(**scope)
    assert await keeper.request("GET", "/v1/namespaces", params=scope) == {"results": [], "next_cursor": None}
    await keeper.request("GET", BY_KEY, params=name | scope, status=404)
    assert (await keeper.request("DELETE", BY_KEY, params=name | scope))["deleted"] is False
    for memory in (plain, keyed):
        path = f"/v1/memories/{memory['id']}"
        await keeper.request("GET", path, status=404)
        await keeper.request("GET", f"{path}/history", status=404)
        await change(keeper, memory, importance=0.9, status=404)
        await keeper.request("POST", f"{path}/archive", status=404)
    exported = await keeper.client.get("/v1/memories/export", params=scope)
    assert "lantern" not in exported.text
    assert "lantern" not in str((await keeper.context(session, "which lantern?"))["messages"][:-1])
    new_plain = await keeper.save("the lantern is red", **scope)
    new_keyed = await keeper.request(
        "PUT",
        BY_KEY,
        params=name | scope,
        json={"content": "green"},
        headers={"if-none-match": "*"},
        status=201,
    )
    assert (new_plain["tags"], new_plain["reinforcement_count"]) == ([], 1)
    assert {new_plain["id"], new_keyed["id"]}.isdisjoint({plain["id"], keyed["id"]})
