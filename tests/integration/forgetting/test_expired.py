"""What has expired is shown nowhere, though the sweep has not deleted it yet."""

from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from shared.dreams.runs import queries as run_queries
from shared.dreams.runs import recheck
from shared.dreams.runs.dream_run import PassState
from shared.dreams.runs.outcome import Outcome
from shared.foundation.stages import DreamPass
from tests.agent import Agent, Json, wait_until
from tests.conftest import Gateway
from tests.integration.forgetting.interruptions import delete_after_gathering
from tests.sql import sql

SECRET = "marmalade"
FAR = "2999-01-01T00:00:00Z"
Expire = Callable[[str], Awaitable[None]]
CONFLICT, NOT_FOUND, CREATED = 409, 404, 201


def _expirer(gateway: Gateway, table: str) -> Expire:
    async def expire_row(row_id: str) -> None:
        statement = f"UPDATE {table} SET expires_at = now() - interval '1 second' WHERE id = :id"  # noqa: S608
        await sql(gateway, statement, id=row_id)

    return expire_row


@pytest.fixture
def expire(gateway: Gateway) -> Expire:
    """Return a function that lets the expiry of a memory be over, as time would."""
    return _expirer(gateway, "memory")


@pytest.fixture
def expire_session(gateway: Gateway) -> Expire:
    """Return a function that lets the time to live of a session be over, as time would."""
    return _expirer(gateway, "session")


async def repeat(agent: Agent, path: str, body: Json, status: int, method: str = "POST") -> Json:
    """Send a request with the key of the test."""
    headers = {"idempotency-key": "k"}
    return cast(Json, await agent.request(method, path, json=body, headers=headers, status=status))


async def test_an_expired_memory_is_not_replayed_with_its_turn(agent: Agent, expire: Expire) -> None:
    memory = await agent.save(f"The jar holds {SECRET}.", expires_at=FAR)
    other = await agent.save("The jar is blue.")
    session = await agent.session()
    assert SECRET in str(await agent.context(session, "Which jar?"))
    await expire(memory["id"])
    for record_turn in (False, True):
        context = await agent.context(session, "And now?", record_turn=record_turn)
        assert SECRET not in str(context)
        assert other["content"] in str(context)


async def test_a_memory_that_expires_between_gathering_and_recording_is_left_out(
    agent: Agent, expire: Expire, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = await agent.save(f"The jar holds {SECRET}.", expires_at=FAR)
    session = await agent.session()
    delete_after_gathering(monkeypatch, lambda: expire(memory["id"]))
    assert SECRET not in str(await agent.context(session, "Which jar?"))


async def test_a_replayed_memory_that_expires_meanwhile_is_left_out(
    agent: Agent, expire: Expire, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = await agent.save(f"The jar holds {SECRET}.", expires_at=FAR)
    session = await agent.session()
    assert SECRET in str(await agent.context(session, "Which jar?"))
    delete_after_gathering(monkeypatch, lambda: expire(memory["id"]))
    assert SECRET not in str(await agent.context(session, "Anything else?"))


@pytest.mark.parametrize("is_replayed", [False, True], ids=["recalled", "replayed"])
async def test_a_context_is_not_repeated_once_a_memory_in_it_has_expired(
    agent: Agent,
    expire: Expire,
    is_replayed: bool,  # noqa: FBT001
) -> None:
    memory = await agent.save(f"The jar holds {SECRET}.", expires_at=FAR)
    session = await agent.session()
    if is_replayed:
        await agent.context(session, "Which jar?")
    first = await agent.context(session, "What is in the jar?", idempotency_key="k")
    assert SECRET in str(first)
    assert await agent.context(session, "What is in the jar?", idempotency_key="k") == first
    await expire(memory["id"])
    path = f"/v1/sessions/{session}/context"
    problem = await repeat(agent, path, {"message": "What is in the jar?"}, CONFLICT)
    assert "expired" in problem["detail"]
    # What the documents say to do then: the turn is recorded already, so the context alone is asked for.
    context = await agent.context(session, "What is in the jar?", record_turn=False)
    assert SECRET not in str(context)
    turns = (await agent.request("GET", f"/v1/sessions/{session}/turns"))["results"]
    assert [turn["content"] for turn in turns].count("What is in the jar?") == 1


async def test_a_context_is_repeated_if_its_memories_no_longer_expire(agent: Agent, expire: Expire) -> None:
    memory = await agent.save("The jar is blue.", expires_at=FAR)
    session = await agent.session()
    first = await agent.context(session, "Which jar?", idempotency_key="k")
    await agent.request("PATCH", f"/v1/memories/{memory['id']}", json={"expires_at": None})
    assert await agent.context(session, "Which jar?", idempotency_key="k") == first


@pytest.mark.parametrize(
    "prefix", ["session/{}", "patrol/p1", "subagent/s1"], ids=["own", "patrol", "subagent"]
)
async def test_a_context_is_not_repeated_once_an_entry_in_it_has_expired(agent: Agent, prefix: str) -> None:
    session = await agent.session()
    key = f"{prefix.format(session)}/{SECRET}"
    value = "word " * 4000 if prefix.startswith("subagent") else "on the desk"
    await agent.put(key, value, ttl_seconds=2)
    await agent.put(f"session/{session}/other", "on the desk")
    first = await agent.context(session, "What is there?", idempotency_key="k")
    assert SECRET in str(first)

    async def is_gone() -> bool:
        return (await agent.client.get(f"/v1/working/{key}")).status_code == NOT_FOUND

    await wait_until(is_gone)
    # Another entry of that name is not the one that was shown.
    await agent.put(key, value)
    problem = await repeat(agent, f"/v1/sessions/{session}/context", {"message": "What is there?"}, CONFLICT)
    assert "expired" in problem["detail"]


async def test_saves_are_not_repeated_once_their_memory_has_expired(agent: Agent, expire: Expire) -> None:
    body = {"content": f"The jar holds {SECRET}.", "expires_at": FAR}
    requests: list[tuple[str, str, Json, int]] = [
        ("POST", "/v1/memories", body, CREATED),
        ("POST", "/v1/memories/batch", {"memories": [{**body, "key": "a"}, {**body, "key": "b"}]}, CREATED),
        ("PUT", "/v1/memories/by-key?key=c", body, CREATED),
    ]
    for method, path, content, status in requests:
        saved = await repeat(agent, path, content, status, method)
        assert await repeat(agent, path, content, status, method) == saved
        await expire(saved["results"][1]["id"] if "results" in saved else saved["id"])
        assert "expired" in (await repeat(agent, path, content, CONFLICT, method))["detail"]


async def test_what_was_answered_for_a_session_is_not_repeated_once_it_has_expired(
    agent: Agent, expire_session: Expire
) -> None:
    session = await agent.session(ttl_seconds=3600)
    path = f"/v1/sessions/{session}"
    requests: list[tuple[str, Json, int]] = [
        (f"{path}/context", {"message": f"Where is the {SECRET}?"}, 200),
        (f"{path}/scratchpad", {"content": f"It is {SECRET}."}, CREATED),
        (f"{path}/observations", {"kind": "fact", "content": f"It is {SECRET}."}, CREATED),
    ]
    for route, body, status in requests:
        assert SECRET in str(await repeat(agent, route, body, status))
    await expire_session(session)
    for route, body, _ in requests:
        assert "expired" in (await repeat(agent, route, body, CONFLICT))["detail"]


@pytest.mark.parametrize("is_expired_before", [True, False], ids=["between", "afterwards"])
async def test_a_past_turn_of_an_expired_session_is_in_no_recorded_and_no_repeated_context(
    agent: Agent,
    gateway: Gateway,
    expire_session: Expire,
    monkeypatch: pytest.MonkeyPatch,
    is_expired_before: bool,  # noqa: FBT001
) -> None:
    settings = gateway.resources.settings.model_copy(update={"recall_past_turns": 5})
    object.__setattr__(gateway.resources, "settings", settings)
    past, session = await agent.session(ttl_seconds=3600), await agent.session()
    await agent.append_turn(past, f"The jar holds {SECRET}.")
    if is_expired_before:
        delete_after_gathering(monkeypatch, lambda: expire_session(past))
    context = await agent.context(session, "What does the jar hold?", idempotency_key="k")
    assert (SECRET in str(context)) is not is_expired_before
    if not is_expired_before:
        await expire_session(past)
        body = {"message": "What does the jar hold?"}
        await repeat(agent, f"/v1/sessions/{session}/context", body, CONFLICT)


async def test_signals_of_an_expired_session_are_not_listed(agent: Agent, expire_session: Expire) -> None:
    session, other = await agent.session(ttl_seconds=3600), await agent.session()
    for id_ in (session, other):
        await agent.append_turn(id_, "No, that's wrong.", role="user")
    await expire_session(session)
    signals = (await agent.request("GET", "/v1/feedback"))["results"]
    assert [signal["session_id"] for signal in signals] == [other]


async def test_a_pass_that_was_shown_a_memory_which_expired_meanwhile_keeps_nothing_of_it(
    agent: Agent, gateway: Gateway, expire: Expire
) -> None:
    memory = await agent.save(f"The jar holds {SECRET}.", expires_at=FAR)
    other = await agent.save("The jar is blue.")
    shown = {memory["id"], other["id"]}
    outcome = Outcome(inputs={"a": SECRET}, proposed=[SECRET], shown_memories=shown)

    async def recheck_outcome() -> Outcome:
        async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
            return await recheck.without_deleted(tx, outcome)

    assert await recheck_outcome() is outcome
    await expire(memory["id"])
    kept = await recheck_outcome()
    assert SECRET not in str(kept)
    assert kept.shown_memories == {other["id"]}


async def test_a_dream_run_is_read_without_the_texts_of_what_has_expired(
    agent: Agent, gateway: Gateway, expire: Expire
) -> None:
    memory = await agent.save(f"The jar holds {SECRET}.", expires_at=FAR)
    run_id = (await agent.request("POST", "/v1/dreams", json={"dry_run": True}, status=CREATED))["id"]
    texts: Json = {"inputs": {memory["id"]: 1}, "proposed": [SECRET], "rejections": [{"detail": SECRET}]}
    pass_ = DreamPass.CONSOLIDATE
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        run = await run_queries.get(tx, run_id)
        assert run is not None
        columns: Json = {**texts, "record_ids": [memory["id"]]}
        await run_queries.end_pass(tx, run, pass_, PassState.DONE, **columns)

    async def read_texts() -> Json:
        passes = (await agent.request("GET", f"/v1/dreams/{run_id}"))["passes"]
        [shown] = [shown for shown in passes if shown["name"] == pass_]
        return {name: shown[name] for name in texts}

    assert await read_texts() == texts
    await expire(memory["id"])
    assert await read_texts() == {"inputs": {}, "proposed": None, "rejections": []}
