"""What was derived from a turn goes when a caller edits or deletes it; what has other sources stays."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from sqlalchemy import func, insert, select

from shared.conversation.feedback.table import feedback_signal
from shared.conversation.sessions.open import get_session
from shared.conversation.turns import log_queries, window
from shared.conversation.turns.table import recalled_memory
from shared.dreams.runs import evaluated_session_queries, unread_turn_queries
from shared.dreams.runs.table import dream_evaluated_session, dream_read_turn, preference_occurrence
from shared.foundation.scope import Caller, Scope
from shared.foundation.stages import DreamPass
from shared.memory.longterm.table import memory_history, memory_tombstone
from shared.platform.spend.table import charge
from tests.agent import Agent
from tests.conftest import Gateway
from tests.integration.forgetting.conftest import records_with
from tests.integration.forgetting.interruptions import delete_after_gathering
from tests.state import StateInspector

SECRET = "marmalade"
SESSION = "trip"
TURNS = f"/v1/sessions/{SESSION}/turns"
Withdraw = Callable[[Agent], Awaitable[Any]]


async def _edit(agent: Agent) -> None:
    await agent.request("PATCH", f"{TURNS}/2", json={"content": "something else"})


async def _delete(agent: Agent) -> None:
    await agent.request("DELETE", f"{TURNS}/2")


async def _pop(agent: Agent) -> None:
    await agent.request("DELETE", f"{TURNS}/3")
    await agent.request("POST", f"{TURNS}/pop")


async def _clear(agent: Agent) -> None:
    await agent.request("DELETE", TURNS)


WAYS = pytest.mark.parametrize("withdraw", [_edit, _delete, _pop, _clear], ids=lambda way: way.__name__[1:])


@pytest.fixture
async def agent(agent: Agent) -> Agent:
    """An agent with a session of three turns; the second one holds the secret, and cost something."""
    await agent.session(id=SESSION)
    secret = {"role": "user", "content": f"The jar holds {SECRET}."}
    usage = {"model": "m", "prompt_tokens": 1}
    for turn in (
        {"role": "user", "content": "one"},
        secret | {"usage": usage},
        {"role": "user", "content": "3"},
    ):
        await agent.request("POST", TURNS, json=turn, status=201)
    return agent


def _from_turn(seq: int, session_id: str = SESSION) -> dict[str, Any]:
    return {"source": {"session_id": session_id, "seq": seq}}


@WAYS
async def test_a_memory_of_this_turn_alone_goes_with_its_history_and_without_a_tombstone(
    agent: Agent, gateway: Gateway, inspector: StateInspector, withdraw: Withdraw
) -> None:
    memory = await agent.save(f"The jar holds {SECRET} (fact).", **_from_turn(2))
    assert len(await records_with(inspector, gateway, SECRET)) > 3
    await withdraw(agent)
    await agent.request("GET", f"/v1/memories/{memory['id']}", status=404)
    assert await records_with(inspector, gateway, SECRET) == []
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        for table in (memory_history, memory_tombstone):
            assert await tx.scalar(select(func.count()).select_from(table)) == 0, table.name
        assert await tx.scalar(select(func.count()).select_from(charge)) == 1, "charges stay"
    assert (await agent.save(f"The jar holds {SECRET} (fact)."))["id"] != memory["id"]


@WAYS
async def test_a_memory_with_another_source_keeps_it(agent: Agent, withdraw: Withdraw) -> None:
    await agent.session(id="other")
    await agent.append_turn("other", "said here, too")
    texts = {
        "another turn": [_from_turn(2), _from_turn(1, "other")],
        "another turn first": [_from_turn(1, "other"), _from_turn(2)],
        "said without a source": [_from_turn(2), {}],
        "said without a source first": [{}, _from_turn(2)],
        "a session": [_from_turn(2), {"source": {"session_id": "other"}}],
    }
    kept = {}
    for text, sources in texts.items():
        for source in sources:
            kept[text] = await agent.save(text, **source)
    batch = [{"content": "in one batch", **source} for source in (_from_turn(2), {})]
    await agent.request("POST", "/v1/memories/batch", json={"memories": batch}, status=201)

    await withdraw(agent)

    for text, memory in kept.items():
        after = await agent.memory(memory["id"])
        assert (SESSION, 2) not in {(source["session_id"], source["seq"]) for source in after["sources"]}
        assert bool(after["sources"]) is ("without" not in text)
        assert text in await agent.search_contents(text), "indexed again under its new version"
        assert (await agent.history(memory["id"]))[-1]["action"] == "source_removed"
    assert "in one batch" in await agent.search_contents("in one batch")


async def _count(gateway: Gateway, table: Any) -> int:
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        where = table.c.tenant == gateway.tenant
        return int(await tx.scalar(select(func.count()).select_from(table).where(where)) or 0)


@WAYS
async def test_the_marks_of_passes_and_the_evidence_of_preferences_fall(
    agent: Agent, gateway: Gateway, withdraw: Withdraw
) -> None:
    scope, both = Scope(gateway.tenant), (DreamPass.INFER_PREFERENCES, DreamPass.EXTRACT_EPISODES)
    evidence = {"key": "k", "level": "casual", "session_id": SESSION, "first_seq": 1, "run_id": "r"}
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        for name in both:
            await unread_turn_queries.mark_read(tx, scope, name, [(SESSION, 1), (SESSION, 2)])
        rows = [{"tenant": gateway.tenant, "agent_id": "default", "seq": seq, **evidence} for seq in (1, 2)]
        await tx.execute(insert(preference_occurrence), rows)
        await evaluated_session_queries.mark_evaluated(tx, SESSION, 3)

    await withdraw(agent)

    is_clear = withdraw is _clear
    assert await _count(gateway, dream_read_turn) == (0 if is_clear else 2), "of turn 1"
    assert await _count(gateway, preference_occurrence) == (0 if is_clear else 1)
    assert await _count(gateway, dream_evaluated_session) == 0
    if withdraw is _edit:
        async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
            turns, _ = await unread_turn_queries.list_oldest_unread(tx, scope, both[0], 9)
        assert [turn.content for turn in turns] == ["something else", "3"]


async def test_an_evaluation_of_earlier_turns_stays(agent: Agent, gateway: Gateway) -> None:
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        await evaluated_session_queries.mark_evaluated(tx, SESSION, 1)
    await _delete(agent)
    assert await _count(gateway, dream_evaluated_session) == 1


@WAYS
async def test_a_correction_goes_and_an_edited_turn_is_looked_at_again(
    agent: Agent, gateway: Gateway, withdraw: Withdraw
) -> None:
    await agent.request("PATCH", f"{TURNS}/2", json={"content": "No, that's wrong: it is jam."})
    report = {"type": "Correction", "summary": "reported"}
    await agent.request("POST", f"/v1/sessions/{SESSION}/feedback", json=report, status=201)
    assert await _count(gateway, feedback_signal) == 2
    await withdraw(agent)
    signals = (await agent.request("GET", "/v1/feedback"))["results"]
    assert [signal["summary"] for signal in signals] == ["reported"]


async def test_a_doubtful_correction_forgets_the_words_before_it(
    agent: Agent, gateway: Gateway, inspector: StateInspector
) -> None:
    await agent.session(id="talk")
    await agent.append_turn("talk", f"Your {SECRET} comes on Monday at 3 pm.")
    await agent.append_turn("talk", "No, on Tuesday.", role="user")
    found = await records_with(inspector, gateway, f"Your {SECRET}")
    assert any("feedback_signal" in name for name in found), found
    await agent.request("DELETE", "/v1/sessions/talk/turns/1")
    assert await records_with(inspector, gateway, f"Your {SECRET}") == []
    assert await _count(gateway, feedback_signal) == 1


@WAYS
async def test_what_a_turn_recalled_may_be_recalled_again(
    agent: Agent, gateway: Gateway, withdraw: Withdraw
) -> None:
    await _clear(agent)
    await agent.request("DELETE", f"/v1/sessions/{SESSION}")
    await agent.session(id=SESSION)
    await agent.append_turn(SESSION, "one")
    memory = await agent.save("The jar is blue.")
    assert [item["id"] for item in (await agent.context(SESSION, "Which jar?"))["recalled"]] == [memory["id"]]
    await agent.append_turn(SESSION, "3")
    assert (await agent.context(SESSION, "Which jar?", record_turn=False))["recalled"] == []
    await withdraw(agent)
    assert await _count(gateway, recalled_memory) == 0
    later = await agent.context(SESSION, "Which jar?", record_turn=False)
    assert [item["id"] for item in later["recalled"]] == [memory["id"]]
    assert str(later["messages"]).count(memory["id"]) == 1


@WAYS
async def test_stored_answers_that_show_a_turn_are_withdrawn(
    agent: Agent, gateway: Gateway, inspector: StateInspector, withdraw: Withdraw
) -> None:
    await agent.context(SESSION, "What is in it?", idempotency_key="shown")
    await agent.request("DELETE", f"{TURNS}/4")
    await withdraw(agent)
    assert await records_with(inspector, gateway, SECRET) == []
    path = f"/v1/sessions/{SESSION}/context"
    body, headers = {"message": "What is in it?"}, {"idempotency-key": "shown"}
    assert (await agent.client.post(path, json=body, headers=headers)).status_code == 409


async def test_what_was_popped_is_answered_again_until_all_turns_are_deleted(agent: Agent) -> None:
    await agent.request("DELETE", f"{TURNS}/3")
    headers = {"idempotency-key": "pop"}
    for _ in range(2):
        popped = await agent.request("POST", f"{TURNS}/pop", headers=headers)
        assert SECRET in popped["turn"]["content"]
    await _clear(agent)
    await agent.request("POST", f"{TURNS}/pop", headers=headers, status=409)


@WAYS
async def test_a_context_in_flight_finds_out(
    agent: Agent,
    gateway: Gateway,
    inspector: StateInspector,
    monkeypatch: pytest.MonkeyPatch,
    withdraw: Withdraw,
) -> None:
    delete_after_gathering(monkeypatch, lambda: withdraw(agent))
    context = await agent.context(SESSION, "What is in it?", idempotency_key="k")
    assert SECRET not in str(context)
    assert context["first_turn"] is (withdraw is _clear)
    assert await records_with(inspector, gateway, SECRET) == []


@pytest.mark.parametrize("withdraw", [_edit, _delete, _clear], ids=lambda way: way.__name__[1:])
async def test_a_past_turn_that_was_withdrawn_meanwhile_is_left_out(
    agent: Agent,
    gateway: Gateway,
    inspector: StateInspector,
    monkeypatch: pytest.MonkeyPatch,
    withdraw: Withdraw,
) -> None:
    settings = gateway.resources.settings.model_copy(update={"recall_past_turns": 5})
    object.__setattr__(gateway.resources, "settings", settings)
    session = await agent.session()
    delete_after_gathering(monkeypatch, lambda: withdraw(agent))
    context = await agent.context(session, "What does the jar hold?", idempotency_key="k")
    assert SECRET not in str(context)
    assert await records_with(inspector, gateway, SECRET) == []


@WAYS
async def test_a_push_in_flight_brings_no_turn_back(
    agent: Agent, gateway: Gateway, withdraw: Withdraw
) -> None:
    """What was read before the withdrawal is cached after it: no reader may take it for the window."""
    resources, caller = gateway.resources, Caller("k", gateway.tenant, frozenset())
    async with resources.postgres.for_tenant(gateway.tenant) as tx:
        session = await get_session(tx, resources.settings, caller, SESSION)
        end = await log_queries.list_end(tx, SESSION, 9)
    await withdraw(agent)
    await window.push(resources, session, end.turns, after=0)
    for _ in range(2):
        contents = [turn["content"] for turn in (await agent.request("GET", TURNS))["results"]]
        assert SECRET not in str(contents)
    left: dict[Withdraw, int] = {_edit: 3, _delete: 2, _pop: 1, _clear: 0}
    assert len(contents) == left[withdraw]


async def test_only_metadata_or_the_item_of_a_turn_may_change_without_consequences(agent: Agent) -> None:
    memory = await agent.save("The jar is blue.", **_from_turn(2))
    edit = {"metadata": {"mood": "good"}, "item": {"a": 1}}
    assert (await agent.request("PATCH", f"{TURNS}/2", json=edit))["item"] == {"a": 1}
    assert (await agent.memory(memory["id"]))["sources"][0]["seq"] == 2
    window_turn = (await agent.request("GET", TURNS))["results"][1]
    assert (window_turn["metadata"], window_turn["item"]) == ({"mood": "good"}, {"a": 1})


async def test_edits_beside_contexts_leave_no_trace_of_the_old_text(
    agent: Agent, gateway: Gateway, inspector: StateInspector
) -> None:
    await _clear(agent)
    for number in range(12):
        session = await agent.session()
        await agent.append_turn(session, f"The jar {number} holds {SECRET}.")
        await asyncio.gather(
            agent.context(session, "Which?", idempotency_key=f"k{number}"),
            agent.request("PATCH", f"/v1/sessions/{session}/turns/1", json={"content": "else"}),
        )
    assert await records_with(inspector, gateway, SECRET) == []
