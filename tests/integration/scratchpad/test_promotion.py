"""MM2: what is promoted, by which criterion, where to, by whom, and once."""

from http import HTTPStatus

import pytest

from shared.conversation.scratchpad import cache, queries
from shared.conversation.sessions.open import get_session
from shared.dreams.promotion import due
from shared.foundation import errors
from tests.agent import Agent
from tests.conftest import Gateway
from tests.draining import drain, make_due
from tests.integration.playbooks.conftest import find, record
from tests.integration.scratchpad.conftest import (
    business_context,
    caller_of,
    last_promotion,
    note,
    outcomes,
    promote,
    promoted_memories,
    report,
    snippets,
)

FACT = "Ada wants one invoice a month."


async def test_a_named_snippet_becomes_a_memory_of_the_sessions_user_at_once(agent: Agent) -> None:
    session = await agent.session(user_id="ada")
    named, other = await note(agent, session, FACT), await note(agent, session, "Two lamps are lit.")
    promotion = await promote(agent, session, ids=[named["id"]], reason="she said so")
    assert (promotion["trigger"], promotion["target"], promotion["state"]) == (
        "explicit",
        "preference",
        "done",
    )
    assert outcomes(promotion) == {named["id"]: "promoted"}
    scores = promotion["results"][0]["scores"]
    assert scores.keys() == {"salience", "surprisal", "frequency", "explicit"}
    assert scores["explicit"] == {"value": 1.0, "met": True, "reason": "she said so"}
    assert all(score["reason"] for score in scores.values())
    assert scores["surprisal"]["value"] == 1.0
    assert not scores["salience"]["met"]
    [memory] = await promoted_memories(agent, "ada")
    assert (memory["id"], memory["content"]) == (promotion["results"][0]["memory_id"], FACT)
    assert memory["source"]["session_id"] == session
    assert memory["metadata"]["snippet_id"] == named["id"]
    assert await agent.search_contents("invoice a month", user_id="ada") == [FACT]
    marks = {s["id"]: s["promoted_at"] is not None for s in await snippets(agent, session)}
    assert marks == {named["id"]: True, other["id"]: False}


async def test_a_report_promotes_what_was_written_three_times(agent: Agent) -> None:
    session = await agent.session(user_id="ada")
    frequent = await note(agent, session, FACT, times=3)
    rare = await note(agent, session, "Two lamps are lit.", times=2)
    saved = await report(agent, session, "Billing", "Invoices go out monthly.")
    promotion = await last_promotion(agent, session)
    assert (promotion["id"], promotion["report_id"]) == (saved["promotion_id"], saved["id"])
    assert (promotion["trigger"], promotion["state"]) == ("report", "done")
    assert outcomes(promotion) == {frequent["id"]: "promoted", rare["id"]: "not_promoted"}
    reasons = {name: score["reason"] for name, score in promotion["results"][1]["scores"].items()}
    assert "no language model" in reasons["salience"]
    assert [memory["content"] for memory in await promoted_memories(agent, "ada")] == [FACT]
    path = f"/v1/sessions/{session}/observations"
    [observation] = (await agent.request("GET", path, params={"kind": "report"}))["results"]
    assert (observation["id"], observation["metadata"]) == (saved["id"], {"title": "Billing"})
    body = {"query": "invoices monthly", "user_id": "ada"}
    found = (await agent.request("POST", "/v1/observations/search", json=body))["results"]
    assert [hit["id"] for hit in found] == [saved["id"]]


async def test_a_repeated_report_is_one_report(agent: Agent) -> None:
    session = await agent.session(user_id="ada")
    await note(agent, session, FACT, times=3)
    request = {"json": {"title": "t", "content": "c"}, "headers": {"idempotency-key": "k"}}
    path, created = f"/v1/sessions/{session}/report", HTTPStatus.CREATED
    first = await agent.request("POST", path, status=created, **request)
    assert await agent.request("POST", path, status=created, **request) == first
    assert [memory["reinforcement_count"] for memory in await promoted_memories(agent, "ada")] == [1]


async def test_a_report_whose_process_can_not_promote_is_promoted_by_a_worker(
    agent: Agent, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise errors.Unavailable("postgres", "away")

    session = await agent.session(user_id="ada")
    snippet = await note(agent, session, FACT, times=3)
    with monkeypatch.context() as patched:
        patched.setattr(due, "finish", fail)
        await report(agent, session)
    assert (await last_promotion(agent, session))["state"] == "pending"
    await make_due(gateway.resources)
    await drain(gateway.resources)
    assert outcomes(await last_promotion(agent, session)) == {snippet["id"]: "promoted"}


async def test_the_same_text_from_another_session_reinforces(agent: Agent) -> None:
    for _ in range(2):
        session = await agent.session(user_id="ada")
        snippet = await note(agent, session, FACT, times=3)
        await report(agent, session)
    assert outcomes(await last_promotion(agent, session)) == {snippet["id"]: "reinforced"}
    [memory] = await promoted_memories(agent, "ada")
    assert memory["reinforcement_count"] == 2


async def test_what_was_promoted_is_examined_once_and_named_again_reinforces(agent: Agent) -> None:
    session = await agent.session(user_id="ada")
    snippet = await note(agent, session, FACT, times=3)
    await report(agent, session)
    await report(agent, session)
    assert (await last_promotion(agent, session))["results"] == []
    assert (await promote(agent, session))["results"] == []
    assert outcomes(await promote(agent, session, ids=[snippet["id"]])) == {snippet["id"]: "reinforced"}


async def test_only_a_caller_brings_back_a_deleted_text(agent: Agent) -> None:
    session = await agent.session(user_id="ada")
    snippet = await note(agent, session, FACT, times=3)
    promotion = await promote(agent, session)
    await agent.request("DELETE", f"/v1/memories/{promotion['results'][0]['memory_id']}")
    later = await agent.session(user_id="ada")
    other = await note(agent, later, FACT, times=3)
    await report(agent, later)
    assert outcomes(await last_promotion(agent, later)) == {other["id"]: "deleted_before"}
    assert await promoted_memories(agent, "ada") == []
    assert outcomes(await promote(agent, session, ids=[snippet["id"]])) == {snippet["id"]: "promoted"}


async def test_what_is_about_money_asks_for_permission(agent: Agent) -> None:
    session = await agent.session(user_id="ada")
    await note(agent, session, "Pay every invoice at once.")
    await note(agent, session, "Answer in German.")
    await promote(agent, session)
    asks = {
        m["content"]: m["metadata"].get("requires_user_permission")
        for m in await promoted_memories(agent, "ada")
    }
    assert asks == {"Pay every invoice at once.": "true", "Answer in German.": None}


async def test_an_unknown_snippet_promotes_nothing(agent: Agent) -> None:
    session = await agent.session(user_id="ada")
    snippet = await note(agent, session, FACT)
    await promote(agent, session, ids=[snippet["id"], "feedfeedfeed"], status=HTTPStatus.NOT_FOUND)
    assert await promoted_memories(agent, "ada") == []


async def test_a_promoted_snippet_is_evicted_before_any_other(agent: Agent) -> None:
    session = await agent.session(user_id="ada")
    first = await note(agent, session, FACT)
    for n in range(63):
        await note(agent, session, f"Note {n}")
    last = (await snippets(agent, session))[-1]
    await promote(agent, session, ids=[last["id"]])
    await note(agent, session, "One more")
    ids = {snippet["id"] for snippet in await snippets(agent, session)}
    assert first["id"] in ids
    assert last["id"] not in ids


async def test_only_an_unbound_key_writes_business_context(agent: Agent, gateway: Gateway) -> None:
    """A bound key would tell the whole tenant what it was only entrusted with itself."""
    session = await agent.session(agent_id="inn", user_id="ada")
    common = await agent.session(agent_id="inn")
    for id_ in (session, common):
        await note(agent, id_, FACT, times=3)
    for binding in ({"agent_id": "inn"}, {"user_id": "ada"}, {"agent_id": "inn", "user_id": "ada"}):
        async with await gateway.new_client(**binding) as client:
            bound, forbidden = Agent(client, gateway.tenant), HTTPStatus.FORBIDDEN
            await promote(bound, session, to="business_context", status=forbidden)
            body = {"content": "mine"}
            await bound.request("PUT", "/v1/business-context", json=body, status=forbidden)
    async with await gateway.new_client(agent_id="inn") as client:
        await report(Agent(client, gateway.tenant), common)
    assert (await last_promotion(agent, common))["target"] == "preference"
    assert (await business_context(agent))["content"] == ""
    assert (await promote(agent, session, to="business_context"))["target"] == "business_context"
    assert (await business_context(agent))["content"] == f"- {FACT}"


async def test_a_session_without_a_user_works_for_the_tenant(agent: Agent) -> None:
    session = await agent.session()
    await note(agent, session, FACT, times=3)
    await report(agent, session)
    assert (await last_promotion(agent, session))["target"] == "business_context"
    assert (await business_context(agent))["content"] == f"- {FACT}"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("report", {"title": " ", "content": "x"}, "title"),
        ("report", {"title": "x", "content": ""}, "content"),
        ("scratchpad/promote", {"to": "playbook"}, "to"),
        ("scratchpad/promote", {"ids": []}, "ids"),
        ("scratchpad/promote", {"reason": " "}, "reason"),
        ("observations", {"kind": "report", "content": "x"}, "kind"),
    ],
)
async def test_bad_input_is_refused(agent: Agent, path: str, body: dict[str, object], field: str) -> None:
    session = await agent.session()
    response = await agent.client.post(f"/v1/sessions/{session}/{path}", json=body)
    assert response.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert [violation["field"] for violation in response.json()["errors"]] == [field]


@pytest.mark.parametrize("trigger", ["report", "all"])
async def test_a_copy_of_a_playbook_is_promoted_only_if_it_is_named(agent: Agent, trigger: str) -> None:
    """A playbook goes with its turns, and its copy with it: what is made of the copy would stay."""
    await record(agent, user_id="ada", user_query="Buy marmalade.")
    session = await agent.session(user_id="ada")
    for _ in range(3):
        found = await find(agent, flow="book_flight", session_id=session)
    frequent = await note(agent, session, FACT, times=3)
    if trigger == "report":
        await report(agent, session)
        promotion = await last_promotion(agent, session)
    else:
        promotion = await promote(agent, session)
    assert outcomes(promotion) == {frequent["id"]: "promoted"}
    assert "marmalade" not in str(promotion)
    named = await promote(agent, session, ids=[found["snippet_id"]])
    assert outcomes(named) == {found["snippet_id"]: "promoted"}


async def test_a_cached_copy_of_a_playbook_is_known_as_one(agent: Agent, gateway: Gateway) -> None:
    await record(agent, user_query="Buy marmalade.")
    session_id = await agent.session()
    await find(agent, flow="book_flight", session_id=session_id)
    await note(agent, session_id, FACT)
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        session = await get_session(tx, gateway.resources.settings, caller_of(gateway), session_id)
        revision = await queries.last_revision(tx, session_id)
    cached, _ = await cache.load(gateway.resources, session, revision)
    assert [snippet.is_own_note for snippet in cached] == [False, True]
