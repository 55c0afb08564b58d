"""MM6: a playbook is promoted if its user was satisfied: said so, or went on without a correction."""

from http import HTTPStatus
from typing import Any

import pytest
from sqlalchemy import func, select, update

from shared.conversation.sessions.table import session as session_table
from shared.memory.playbooks import settle
from shared.memory.playbooks.table import playbook as playbook_table
from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.integration.playbooks.conftest import QUERY, found_ids, record
from workers.sweep import retention

CORRECTION = "No, that's wrong. I meant Porto."
NEXT = "And which trains run on Sunday?"


async def ask(agent: Agent, **more: Any) -> str:
    """Open a session in which the agent has answered the user's query."""
    session = await agent.session(user_id="ada", **more)
    await agent.append_turn(session, QUERY, "user")
    await agent.append_turn(session, "Your flight to Lisbon is booked.")
    return session


async def reread(agent: Agent, playbook: Json) -> str:
    """Read the list of playbooks, and return the reason of one."""
    listing = await agent.request("GET", "/v1/playbooks", params={"user_id": "ada"})
    [reason] = [row["reason"] for row in listing["results"] if row["id"] == playbook["id"]]
    return str(reason)


@pytest.mark.parametrize(
    ("satisfied", "reason", "promoted"), [(True, "satisfied", True), (False, "dissatisfied", False)]
)
async def test_what_the_user_said_of_it_decides(
    agent: Agent, *, satisfied: bool, reason: str, promoted: bool
) -> None:
    for session in (None, await ask(agent)):
        playbook = await record(agent, satisfied=satisfied, session_id=session)
        assert (playbook["reason"], playbook["promoted"]) == (reason, promoted)
        assert (playbook["id"] in await found_ids(agent, query=QUERY, user_id="ada")) is promoted


@pytest.mark.parametrize(
    ("turn", "reason", "promoted"), [(NEXT, "continued", True), (CORRECTION, "corrected", False)]
)
async def test_what_the_user_says_next_decides_before_or_after_it_was_recorded(
    agent: Agent, turn: str, reason: str, *, promoted: bool
) -> None:
    before, after = await ask(agent), await ask(agent)
    await agent.append_turn(before, turn, "user")
    playbook = await record(agent, session_id=before)
    assert (playbook["reason"], playbook["promoted"]) == (reason, promoted)
    waiting = await record(agent, session_id=after, flow_dact="later")
    assert (waiting["reason"], waiting["promoted"]) == ("waiting", False)
    assert await found_ids(agent, flow="later", user_id="ada") == []
    await agent.append_turn(after, turn, "user")
    assert (await found_ids(agent, flow="later", user_id="ada") == [waiting["id"]]) is promoted
    # What the user says later is about something else.
    await agent.append_turn(after, CORRECTION, "user")
    assert await reread(agent, waiting) == reason


async def test_a_correction_in_the_middle_of_the_flow_does_not_count(agent: Agent) -> None:
    session = await ask(agent)
    await agent.append_turn(session, CORRECTION, "user")
    await agent.append_turn(session, "Your flight to Porto is booked.")
    playbook = await record(agent, session_id=session)
    assert playbook["reason"] == "waiting"
    await agent.append_turn(session, NEXT, "user")
    assert await reread(agent, playbook) == "continued"


@pytest.mark.parametrize(
    ("signal", "reason"),
    [("UserThumbsUp", "satisfied"), ("UserThumbsDown", "dissatisfied"), ("Correction", "corrected")],
)
async def test_a_reported_signal_counts_before_the_next_turn(agent: Agent, signal: str, reason: str) -> None:
    session = await agent.session(user_id="ada")
    body, path = {"type": signal, "summary": "reported"}, f"/v1/sessions/{session}/feedback"
    opposite = "UserThumbsDown" if signal == "UserThumbsUp" else "UserThumbsUp"
    await agent.request("POST", path, json=body | {"type": opposite}, status=HTTPStatus.CREATED)
    await agent.append_turn(session, QUERY, "user")
    await agent.append_turn(session, "It is booked.")
    playbook = await record(agent, session_id=session)
    assert playbook["reason"] == "waiting", "a signal of before the flow's end is about something else"
    await agent.append_turn(session, NEXT if signal != "UserThumbsUp" else CORRECTION, "user")
    await agent.request("POST", path, json=body, status=HTTPStatus.CREATED)
    assert await reread(agent, playbook) == reason


@pytest.mark.parametrize(
    ("signals", "reason"),
    [
        (["UserThumbsUp"], "satisfied"),
        (["UserThumbsDown", "UserThumbsUp"], "satisfied"),
        (["UserThumbsUp", "UserThumbsDown"], "waiting"),
        (["UserThumbsDown"], "waiting"),
        (["Correction"], "waiting"),
    ],
)
async def test_a_thumbs_up_while_the_flow_runs_counts_and_what_was_disliked_on_the_way_does_not(
    agent: Agent, signals: list[str], reason: str
) -> None:
    """The order of the reports does not matter: the flow may be completed after the user has praised it."""
    session = await agent.session(user_id="ada")
    path = f"/v1/sessions/{session}/feedback"
    await agent.append_turn(session, QUERY, "user")
    for signal in signals:
        body = {"type": signal, "summary": "reported"}
        await agent.request("POST", path, json=body, status=HTTPStatus.CREATED)
    await agent.append_turn(session, "Your flight to Lisbon is booked.")
    playbook = await record(agent, session_id=session)
    assert playbook["reason"] == reason
    assert (playbook["id"] in await found_ids(agent, query=QUERY, user_id="ada")) is (reason == "satisfied")


async def test_the_sweep_promotes_what_nobody_reads(agent: Agent, gateway: Gateway) -> None:
    going_on, silent = await ask(agent), await ask(agent)
    noted = await record(agent, session_id=going_on)
    await record(agent, session_id=silent)
    await agent.append_turn(going_on, NEXT, "user")
    assert [await settle.settle_tenant(gateway.resources, gateway.tenant) for _ in range(2)] == [1, 0]
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        is_mine = playbook_table.c.tenant == gateway.tenant
        rows = await tx.execute(
            select(playbook_table.c.id, playbook_table.c.reason).where(is_mine, playbook_table.c.promoted)
        )
        assert [tuple(row) for row in rows] == [(noted["id"], "continued")]


async def test_of_expired_sessions_what_was_learnt_stays(agent: Agent, gateway: Gateway) -> None:
    sessions = {name: await ask(agent, id=name) for name in ("silent", "satisfied")}
    playbooks = {name: await record(agent, session_id=name) for name in sessions}
    await agent.append_turn("satisfied", NEXT, "user")
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        is_mine = session_table.c.tenant == gateway.tenant
        await tx.execute(update(session_table).where(is_mine).values(expires_at=func.now()))
    assert await retention.delete_expired_sessions(gateway.resources, gateway.tenant) == 2
    assert await reread(agent, playbooks["silent"]) == "session_ended"
    assert await reread(agent, playbooks["satisfied"]) == "continued"
    assert await found_ids(agent, flow="book_flight", user_id="ada") == [playbooks["satisfied"]["id"]]


async def test_those_whose_user_is_silent_do_not_keep_others_waiting(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settle, "_BATCH", 2)
    silent, answered = await ask(agent), [await ask(agent) for _ in range(3)]
    for _ in range(2):
        await record(agent, session_id=silent)
    waiting = [await record(agent, session_id=session, flow_dact="later") for session in answered]
    await agent.append_turn(answered[0], NEXT, "user")
    await agent.append_turn(answered[1], NEXT, "user")
    signal = {"type": "UserThumbsUp", "summary": "reported"}
    await agent.request(
        "POST", f"/v1/sessions/{answered[2]}/feedback", json=signal, status=HTTPStatus.CREATED
    )
    found = await found_ids(agent, flow="later", user_id="ada")
    assert sorted(found) == sorted(playbook["id"] for playbook in waiting)


async def test_reading_one_settles_it_too(agent: Agent) -> None:
    session = await ask(agent)
    playbook = await record(agent, session_id=session)
    path = f"/v1/playbooks/{playbook['id']}"
    assert (await agent.request("GET", path))["reason"] == "waiting"
    await agent.append_turn(session, NEXT, "user")
    assert (await agent.request("GET", path))["reason"] == "continued"
    assert await found_ids(agent, flow="book_flight", user_id="ada") == [playbook["id"]]


async def test_the_query_itself_is_no_satisfied_user(agent: Agent) -> None:
    session = await ask(agent)
    query = "Find me a train to Porto."
    await agent.append_turn(session, query, "user")
    playbook = await record(agent, session_id=session, user_query=query)
    assert playbook["reason"] == "waiting", "the agent has not answered yet"
    await agent.append_turn(session, "It is booked.")
    await agent.append_turn(session, CORRECTION, "user")
    assert await reread(agent, playbook) == "corrected"


async def test_a_flow_whose_turns_are_appended_after_its_report_has_them_all_the_same(agent: Agent) -> None:
    session = await agent.session(user_id="ada")
    playbook = await record(agent, session_id=session)
    await agent.append_turn(session, QUERY, "user")
    await agent.append_turn(session, "Your flight to Lisbon is booked.")
    assert await reread(agent, playbook) == "waiting", "the user has only asked"
    await agent.append_turn(session, QUERY.lower(), "user")
    assert await reread(agent, playbook) == "waiting", "and has asked the same again"
    await agent.append_turn(session, NEXT, "user")
    assert await reread(agent, playbook) == "continued"
    await agent.request("PATCH", f"/v1/sessions/{session}/turns/1", json={"content": "something else"})
    await agent.request("GET", f"/v1/playbooks/{playbook['id']}", status=HTTPStatus.NOT_FOUND)
