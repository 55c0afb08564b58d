"""TR6: two memories that say otherwise stand side by side until one of them gives way."""

from http import HTTPStatus
from typing import Any

import pytest

from shared.memory.longterm import contested, queries
from shared.memory.longterm.contested import Rivals
from tests.agent import Agent, Json, random_word
from tests.conftest import Gateway
from tests.sql import sql

CONFLICT, NOT_FOUND, FORBIDDEN = HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN


@pytest.fixture
def scope() -> Json:
    return {"agent_id": random_word(), "user_id": random_word()}


async def _contest(gateway: Gateway, newer: Json, older: Json) -> Rivals | None:
    async with gateway.resources.transaction(gateway.tenant) as tx:
        memories = {memory.id: memory for memory in await queries.read(tx, [newer["id"], older["id"]])}
        return await contested.contest(tx, memories[newer["id"]], memories[older["id"]], "judge")


async def _pair(gateway: Gateway, agent: Agent, scope: Json) -> tuple[Json, Json]:
    older = await agent.save("Ada lives in Turin.", occurred_at="2026-01-05T00:00:00Z", **scope)
    newer = await agent.save("Ada lives in Rome.", occurred_at="2026-03-02T00:00:00Z", **scope)
    assert await _contest(gateway, newer, older) is not None
    return newer, older


async def _rivals(agent: Agent, memory: Json) -> list[str]:
    return list((await agent.memory(memory["id"]))["contested_with"])


async def test_both_name_each_other_and_their_history_says_so(
    gateway: Gateway, agent: Agent, scope: Json
) -> None:
    newer, older = await _pair(gateway, agent, scope)
    assert await _rivals(agent, newer) == [older["id"]]
    assert await _rivals(agent, older) == [newer["id"]]
    for memory in (newer, older):
        assert [item["action"] for item in await agent.history(memory["id"])] == ["created", "contested"]
    assert await _contest(gateway, newer, older) is None
    third = await agent.save("Ada lives in Bari.", **scope)
    await _contest(gateway, third, older)
    assert sorted(await _rivals(agent, older)) == sorted([newer["id"], third["id"]])
    for memory in (newer, third):
        assert await _rivals(agent, memory) == [older["id"]]


@pytest.mark.parametrize("gone", ["newer", "older"])
@pytest.mark.parametrize("change", ["delete", "archive", "edit", "close", "filter", "expire"])
async def test_it_ends_however_one_of_them_leaves(
    gateway: Gateway, agent: Agent, scope: Json, change: str, gone: str
) -> None:
    newer, older = await _pair(gateway, agent, scope)
    leaving, staying = (newer, older) if gone == "newer" else (older, newer)
    path = f"/v1/memories/{leaving['id']}"
    fields: dict[str, Any] = {
        "edit": {"content": "Ada rents."},
        "close": {"valid_until": "2026-06-01T00:00:00Z"},
    }
    if change == "delete":
        await agent.request("DELETE", path)
    elif change == "archive":
        await agent.request("POST", f"{path}/archive", json={})
    elif change == "filter":
        condition = {"field": "occurred_at", "op": "eq", "value": leaving["occurred_at"]}
        await agent.request("POST", "/v1/memories/delete", json={"filter": condition, **scope})
    elif change == "expire":
        statement = "UPDATE memory SET archived_at = now(), state = 'archived' WHERE id = :id"
        await sql(gateway, statement, id=leaving["id"])
    else:
        await agent.request("PATCH", path, json=fields[change])
    assert await _rivals(agent, staying) == []
    if change not in {"delete", "filter"}:
        assert await _rivals(agent, leaving) == []


async def test_other_changes_leave_it_as_it_is(gateway: Gateway, agent: Agent, scope: Json) -> None:
    newer, older = await _pair(gateway, agent, scope)
    await agent.request("PATCH", f"/v1/memories/{newer['id']}", json={"importance": 0.9})
    saved = await agent.save(older["content"], occurred_at=older["occurred_at"], **scope)
    assert (saved["id"], saved["reinforcement_count"]) == (older["id"], 2)
    assert (await _rivals(agent, newer), await _rivals(agent, older)) == ([older["id"]], [newer["id"]])


async def test_both_may_leave_at_once(gateway: Gateway, agent: Agent, scope: Json) -> None:
    newer, older = await _pair(gateway, agent, scope)
    await sql(
        gateway,
        "UPDATE memory SET archived_at = now(), state = 'archived' WHERE id = ANY (:ids)",
        ids=[newer["id"], older["id"]],
    )
    assert (await _rivals(agent, newer), await _rivals(agent, older)) == ([], [])


async def test_no_statement_names_a_rival_that_cannot_be_one(
    gateway: Gateway, agent: Agent, scope: Json
) -> None:
    memory = await agent.save("Ada lives in Rome.", **scope)
    closed = await agent.save("Ada lives in Turin.", valid_until="2026-01-01T00:00:00Z", **scope)
    other = await agent.save("Bob lives in Turin.", agent_id=scope["agent_id"], user_id="bob")
    names = [memory["id"], closed["id"], other["id"], "0123456789ab"]
    await sql(gateway, "UPDATE memory SET contested_with = :ids WHERE id = :id", ids=names, id=memory["id"])
    for item in (memory, closed, other):
        assert await _rivals(agent, item) == []
    assert await _contest(gateway, memory, closed) is None
    assert await _contest(gateway, memory, other) is None


async def test_a_caller_resolves_it(gateway: Gateway, agent: Agent, scope: Json) -> None:
    newer, older = await _pair(gateway, agent, scope)
    path = f"/v1/memories/{older['id']}/resolve"
    closed = await agent.request("POST", path, json={"keep": newer["id"], "reason": "she has moved"})
    assert (closed["superseded_by"], closed["contested_with"]) == ([newer["id"]], [])
    assert closed["valid_until"] is not None
    assert await _rivals(agent, newer) == []
    assert (await agent.memory(newer["id"]))["valid_until"] is None
    for memory in (newer, older):
        last = (await agent.history(memory["id"]))[-1]
        assert (last["action"], last["reason"]) == ("resolved", "she has moved")
    await agent.request("POST", path, json={"keep": newer["id"]}, status=CONFLICT)


async def test_only_rivals_are_resolved_and_only_by_who_may_change_both(
    gateway: Gateway, agent: Agent, scope: Json
) -> None:
    newer, older = await _pair(gateway, agent, scope)
    third = await agent.save("Ada has a dog.", **scope)
    path = f"/v1/memories/{older['id']}/resolve"
    for keep in (third["id"], older["id"], "0123456789ab"):
        await agent.request("POST", path, json={"keep": keep}, status=CONFLICT)
    unknown = "/v1/memories/0123456789ab/resolve"
    await agent.request("POST", unknown, json={"keep": older["id"]}, status=NOT_FOUND)
    common = {"agent_id": scope["agent_id"]}
    pair = await _pair(gateway, agent, common)
    async with await gateway.new_client(user_id=scope["user_id"]) as client:
        bound = Agent(client, gateway.tenant)
        body = {"keep": pair[0]["id"]}
        await bound.request("POST", f"/v1/memories/{pair[1]['id']}/resolve", json=body, status=FORBIDDEN)
        await bound.request("POST", path, json={"keep": newer["id"]})
    async with await gateway.new_client(user_id="somebody") as client:
        other = Agent(client, gateway.tenant)
        await other.request("POST", path, json={"keep": newer["id"]}, status=NOT_FOUND)
    assert await _rivals(agent, pair[1]) == [pair[0]["id"]]


async def test_a_context_shows_both_the_newer_first(gateway: Gateway, agent: Agent, scope: Json) -> None:
    older = await agent.save("The workshop is in Turin.", occurred_at="2026-01-05T00:00:00Z", **scope)
    newer = await agent.save("Ada forges everything at Rome.", occurred_at="2026-03-02T00:00:00Z", **scope)
    session = await agent.session(**scope)
    await _contest(gateway, newer, older)
    context = await agent.context(session, "Which workshop in Turin?")
    [block] = [block for block in context["blocks"] if block["kind"] == "recalled"]
    assert block["ids"] == [newer["id"], older["id"]]
    assert f"(general, 2026-03-02, contested by [{older['id']}]): Ada forges" in block["text"]
    assert f"(general, 2026-01-05, contested by [{newer['id']}]): The workshop" in block["text"]
    path = f"/v1/memories/{older['id']}/resolve"
    await agent.request("POST", path, json={"keep": newer["id"]})
    second_context = await agent.context(session, "Who forges at Rome?")
    [block] = [block for block in second_context["blocks"] if block["kind"] == "recalled"]
    assert f"- [{newer['id']}] (general): Ada forges" in block["text"]


async def test_an_import_brings_a_contest_along(gateway: Gateway, agent: Agent, scope: Json) -> None:
    newer, older = await _pair(gateway, agent, scope)
    exported = await gateway.client.get("/v1/memories/export", params=scope)
    target = {"agent_id": random_word()}
    for _ in range(2):
        headers = {"content-type": "application/x-ndjson"}
        await agent.request(
            "POST", "/v1/memories/import", params=target, content=exported.content, headers=headers
        )
    page = await agent.request("GET", "/v1/memories", params=target)
    names = {memory["content"]: memory for memory in page["results"]}
    first, second = names[newer["content"]], names[older["content"]]
    assert (first["contested_with"], second["contested_with"]) == ([second["id"]], [first["id"]])
