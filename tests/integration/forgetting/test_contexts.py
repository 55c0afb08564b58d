"""A context that was gathered before a deletion and recorded after it keeps nothing of what was deleted."""

import asyncio
from typing import Any

import httpx
import pytest

from shared.context import recheck
from tests.agent import Agent
from tests.conftest import Gateway
from tests.integration.forgetting.conftest import records_with
from tests.integration.forgetting.interruptions import delete_after_gathering
from tests.state import StateInspector

SECRET = "marmalade"


async def test_a_memory_deleted_between_gathering_and_recording_is_left_out(
    agent: Agent, gateway: Gateway, inspector: StateInspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = await agent.save(f"The jar holds {SECRET}.")
    other = await agent.save("The jar is blue.")
    session = await agent.session()

    delete_after_gathering(monkeypatch, lambda: agent.request("DELETE", f"/v1/memories/{memory['id']}"))
    context = await agent.context(session, "Which jar?", idempotency_key="k")

    assert [recalled["id"] for recalled in context["recalled"]] == [other["id"]]
    assert SECRET not in str(context)
    assert await agent.context(session, "Which jar?", idempotency_key="k") == context
    assert SECRET not in str(await agent.context(session, "And now?"))
    assert await records_with(inspector, gateway, SECRET) == []


async def test_a_turn_that_a_clear_meanwhile_made_the_first_gets_the_newest_memories(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = await agent.save("The jar is blue.")
    session = await agent.session()
    await agent.append_turn(session, "Hello.", role="user")

    turns = f"/v1/sessions/{session}/turns"
    delete_after_gathering(monkeypatch, lambda: agent.request("DELETE", turns))
    context = await agent.context(session, "Zzyzx?", idempotency_key="k")

    assert (context["first_turn"], [found["id"] for found in context["recalled"]]) == (True, [memory["id"]])
    assert context["seq"] == 2


async def test_a_replayed_line_whose_memory_is_deleted_meanwhile_is_left_out(
    agent: Agent, gateway: Gateway, inspector: StateInspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = await agent.save(f"The jar holds {SECRET}.")
    session = await agent.session()
    assert SECRET in str(await agent.context(session, "Which jar?"))

    delete_after_gathering(monkeypatch, lambda: agent.request("DELETE", f"/v1/memories/{memory['id']}"))
    context = await agent.context(session, "Anything else?", idempotency_key="k")

    assert SECRET not in str(context)
    assert await records_with(inspector, gateway, SECRET) == []


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_a_pinned_text_that_is_changed_or_deleted_meanwhile_is_in_no_stored_context(
    agent: Agent,
    gateway: Gateway,
    inspector: StateInspector,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
) -> None:
    await agent.request("PUT", "/v1/pinned/jar", json={"content": f"The jar holds {SECRET}."})
    session = await agent.session()
    body: dict[str, Any] = {"json": {"content": "The jar is empty."}} if method == "PUT" else {}

    delete_after_gathering(monkeypatch, lambda: agent.request(method, "/v1/pinned/jar", **body))
    context = await agent.context(session, "Which jar?", idempotency_key="k")

    assert [SECRET in str(context), "The jar is empty." in str(context)] == [False, method == "PUT"]
    assert await records_with(inspector, gateway, SECRET) == []


@pytest.mark.parametrize("is_deleted_before", [True, False], ids=["between", "afterwards"])
async def test_a_past_turn_of_a_deleted_session_is_in_no_stored_context(
    agent: Agent,
    gateway: Gateway,
    inspector: StateInspector,
    monkeypatch: pytest.MonkeyPatch,
    is_deleted_before: bool,  # noqa: FBT001
) -> None:
    settings = gateway.resources.settings.model_copy(update={"recall_past_turns": 5})
    object.__setattr__(gateway.resources, "settings", settings)
    past, session = await agent.session(), await agent.session()
    await agent.append_turn(past, f"The jar holds {SECRET}.")

    async def delete() -> None:
        await agent.request("DELETE", f"/v1/sessions/{past}")

    if is_deleted_before:
        delete_after_gathering(monkeypatch, delete)
    context = await agent.context(session, "What does the jar hold?", idempotency_key="k")
    assert (SECRET in str(context)) is not is_deleted_before
    if not is_deleted_before:
        await delete()
    assert await records_with(inspector, gateway, SECRET) == []


async def test_contexts_beside_deletions_leave_no_trace_of_what_was_deleted(
    agent: Agent, gateway: Gateway, inspector: StateInspector
) -> None:
    """Neither order of the two may leave a line, a stored response or a cached turn."""
    sessions = [await agent.session() for _ in range(20)]
    for number, session in enumerate(sessions):
        memory = await agent.save(f"Jar {number} holds {SECRET}.")
        await asyncio.gather(
            agent.context(session, f"What does jar {number} hold?", idempotency_key=f"k{number}"),
            agent.request("DELETE", f"/v1/memories/{memory['id']}"),
        )
    assert await records_with(inspector, gateway, SECRET) == []


async def test_an_entry_deleted_between_gathering_and_recording_is_left_out(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await agent.session()
    key = f"session/{session}/{SECRET}"
    await agent.put(key, "on the desk")
    await agent.put(f"session/{session}/other", "on the desk")

    delete_after_gathering(monkeypatch, lambda: agent.request("DELETE", f"/v1/working/{key}"))
    context = await agent.context(session, "What is there?", idempotency_key="k")

    assert f"session/{session}/other" in str(context)
    assert SECRET not in str(context)
    assert await agent.context(session, "What is there?", idempotency_key="k") == context


@pytest.mark.parametrize("path", ["/v1/working/{key}", "/v1/working?prefix={key}"])
async def test_deleting_an_entry_erases_a_response_that_is_just_being_stored(
    agent: Agent, gateway: Gateway, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    session = await agent.session()
    key = f"session/{session}/{SECRET}"
    await agent.put(key, "on the desk")
    leave_out = recheck.leave_out_deleted_entries
    deleting: list[asyncio.Task[httpx.Response]] = []

    async def leave_out_and_delete(*arguments: Any) -> None:
        await leave_out(*arguments)
        deleting.append(asyncio.create_task(gateway.client.delete(path.format(key=key))))
        await asyncio.wait(deleting, timeout=1)

    monkeypatch.setattr(recheck, "leave_out_deleted_entries", leave_out_and_delete)
    assert SECRET in str(await agent.context(session, "What is there?", idempotency_key="k"))
    assert (await asyncio.wait_for(deleting[0], 10)).status_code == 200
    request: dict[str, Any] = {"json": {"message": "What is there?"}, "headers": {"idempotency-key": "k"}}
    repeated = await gateway.client.post(f"/v1/sessions/{session}/context", **request)
    assert repeated.status_code == 409, repeated.text
