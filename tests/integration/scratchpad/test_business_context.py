"""The business context of a tenant: people write it under a version, promotions add, erasures take away."""

import asyncio
from http import HTTPStatus
from typing import Any

import pytest
from sqlalchemy import func, update

from shared.conversation.sessions.table import session as session_table
from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.integration.forgetting.conftest import records_with
from tests.integration.scratchpad.conftest import (
    BUSINESS_CONTEXT,
    business_context,
    note,
    promote,
    promoted_memories,
    snippets,
)
from tests.state import StateInspector
from workers.sweep import retention

SECRET = "quincequince"


async def put(agent: Agent, content: str, version: str | None = None, *, status: int = HTTPStatus.OK) -> Json:
    headers = {} if version is None else {"if-match": version}
    body: dict[str, Any] = {"content": content}
    return dict(await agent.request("PUT", BUSINESS_CONTEXT, json=body, headers=headers, status=status))


def etag(context: Json) -> str:
    return f'"{context["version"]}"'


async def promoted_session(agent: Agent, content: str, **owner: str) -> str:
    """Open a session, promote a snippet of it to the business context, and return the session's id."""
    session = await agent.session(**owner)
    await note(agent, session, content)
    await promote(agent, session, to="business_context", reason="all agents should know")
    return session


async def test_a_person_replaces_only_the_text_that_they_have_read(agent: Agent) -> None:
    assert (await business_context(agent))["content"] == ""
    text = "# Inn\n\n- Kiel has two rooms.\n"
    first = await put(agent, text)
    assert first["content"] == text
    response = await agent.client.get(BUSINESS_CONTEXT, headers={"if-none-match": etag(first)})
    assert response.status_code == HTTPStatus.NOT_MODIFIED
    await put(agent, "other", status=HTTPStatus.PRECONDITION_REQUIRED)
    second = await put(agent, "other", etag(first))
    await put(agent, "third", etag(first), status=HTTPStatus.PRECONDITION_FAILED)
    assert await business_context(agent) == second
    assert (await put(agent, "", etag(second)))["content"] == ""


async def test_of_many_writers_with_one_version_one_succeeds(agent: Agent) -> None:
    async def write_at_once(word: str, headers: dict[str, str]) -> list[int]:
        bodies = [{"content": f"{word} {n}"} for n in range(10)]
        writes = (agent.client.put(BUSINESS_CONTEXT, json=body, headers=headers) for body in bodies)
        return sorted([response.status_code for response in await asyncio.gather(*writes)])

    one_of_ten = [HTTPStatus.OK] + [HTTPStatus.PRECONDITION_FAILED] * 9
    assert await write_at_once("by", {"if-none-match": "*"}) == one_of_ten
    written = await business_context(agent)
    assert written["content"].startswith("by ")
    assert await write_at_once("later by", {"if-match": etag(written)}) == one_of_ten


async def test_promotions_add_lines_with_their_provenance(agent: Agent) -> None:
    await put(agent, "# Inn")
    ada = await promoted_session(agent, "Kiel has\n# two rooms", user_id="ada", agent_id="desk")
    bob = await promoted_session(agent, "Trains run hourly.", user_id="bob")
    cy = await promoted_session(agent, "The trains run hourly", user_id="cy")
    context = await business_context(agent)
    assert context["content"] == "# Inn\n- Kiel has ⏎ # two rooms\n- Trains run hourly."
    lines = [(source["line"], source["session_id"], source["user_id"]) for source in context["provenance"]]
    assert lines == [(2, ada, "ada"), (3, bob, "bob"), (3, cy, "cy")]
    [snippet] = await snippets(agent, ada)
    assert context["provenance"][0]["snippet_id"] == snippet["id"]
    assert "all agents should know" in context["provenance"][0]["reason"]


async def test_a_bound_key_reads_the_text_and_not_who_is_behind_it(agent: Agent, gateway: Gateway) -> None:
    await promoted_session(agent, "Trains run hourly.", user_id="bob")
    async with await gateway.new_client(user_id="ada") as client:
        context = await business_context(Agent(client, gateway.tenant))
    assert (context["content"], context["provenance"]) == ("- Trains run hourly.", [])


async def test_an_erased_user_is_in_no_line_but_what_others_said_stays(
    agent: Agent, inspector: StateInspector, gateway: Gateway
) -> None:
    await promoted_session(agent, f"Only Ada knows the {SECRET}.", user_id="ada")
    await promoted_session(agent, "Trains run hourly.", user_id="ada")
    await promoted_session(agent, "The trains run hourly.", user_id="bob")
    context = await business_context(agent)
    version = etag(await put(agent, f"# Inn\n{context['content']}", etag(context)))
    receipt = await agent.request("DELETE", "/v1/users/ada")
    assert receipt["erased"]["business_context_lines"] == 2
    after = await business_context(agent)
    assert after["content"] == "# Inn\n- Trains run hourly."
    assert [source["user_id"] for source in after["provenance"]] == ["bob"]
    await put(agent, f"# Inn\n- Only Ada knows the {SECRET}.", version, status=HTTPStatus.PRECONDITION_FAILED)
    assert await records_with(inspector, gateway, SECRET) == []


async def test_a_deleted_session_takes_its_lines_snippets_and_reports_along(
    agent: Agent, inspector: StateInspector, gateway: Gateway
) -> None:
    session = await promoted_session(agent, f"The {SECRET} is ripe.", user_id="ada")
    body = {"title": SECRET, "content": SECRET}
    created, headers = HTTPStatus.CREATED, {"idempotency-key": "k"}
    await agent.request("POST", f"/v1/sessions/{session}/report", json=body, status=created, headers=headers)
    await agent.request("DELETE", f"/v1/sessions/{session}")
    assert (await business_context(agent))["content"] == ""
    assert await records_with(inspector, gateway, SECRET) == []


@pytest.mark.parametrize("said_elsewhere", [None, "session", "caller"])
async def test_a_deleted_session_takes_what_was_promoted_from_it_alone(
    agent: Agent, inspector: StateInspector, gateway: Gateway, said_elsewhere: str | None
) -> None:
    text = f"Ada likes {SECRET}."
    sessions = [await agent.session(user_id="ada") for _ in range(2)]
    for session in sessions[: 2 if said_elsewhere == "session" else 1]:
        await promote(agent, session, ids=[(await note(agent, session, text))["id"]])
    if said_elsewhere == "caller":
        await agent.save(text, user_id="ada")
    for session in sessions:
        assert [memory["content"] for memory in await promoted_memories(agent, "ada")] == [text]
        await agent.request("DELETE", f"/v1/sessions/{session}")
        if not (said_elsewhere and session == sessions[0]):
            break
    kept = said_elsewhere == "caller"
    left = (await agent.request("GET", "/v1/preferences", params={"user_id": "ada"}))["results"]
    assert [item["effect"]["value"] for item in left] == [text] * kept
    assert bool(await records_with(inspector, gateway, SECRET)) is kept
    if not kept:  # it was withdrawn with its session, and not forgotten for good
        await agent.save(text, user_id="ada")


async def test_an_expired_session_leaves_what_was_promoted(agent: Agent, gateway: Gateway) -> None:
    session = await promoted_session(agent, "Trains run hourly.", user_id="ada", id="old")
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        is_old = session_table.c.tenant == gateway.tenant, session_table.c.id == session
        await tx.execute(update(session_table).where(*is_old).values(expires_at=func.now()))
    assert await retention.delete_expired_sessions(gateway.resources, gateway.tenant) == 1
    context = await business_context(agent)
    assert context["content"] == "- Trains run hourly."
    assert [(s["session_id"], s["user_id"]) for s in context["provenance"]] == [(None, "ada")]
    await agent.request("DELETE", "/v1/users/ada")
    assert (await business_context(agent))["content"] == ""


async def test_promotions_beside_a_person_who_writes_lose_nothing(agent: Agent) -> None:
    session = await agent.session(user_id="ada")
    noted = [await note(agent, session, f"Room {n} is free.") for n in range(8)]

    async def write_on() -> None:
        for n in range(8):
            while True:
                context = await business_context(agent)
                body = {"content": f"{context['content']}\nown {n}"}
                headers = {"if-match": etag(context)}
                response = await agent.client.put(BUSINESS_CONTEXT, json=body, headers=headers)
                if response.status_code == HTTPStatus.OK:
                    break

    promotions = (promote(agent, session, ids=[s["id"]], to="business_context") for s in noted)
    await asyncio.gather(write_on(), *promotions)
    lines = (await business_context(agent))["content"].split("\n")
    assert sorted(line for line in lines if line.startswith("- ")) == [
        f"- Room {n} is free." for n in range(8)
    ]
    assert [line for line in lines if line.startswith("own")] == [f"own {n}" for n in range(8)]
