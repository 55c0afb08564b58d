"""What a deletion can't remove now is finished by a job, and the receipt says so until it is."""

import asyncio
from http import HTTPStatus
from typing import Any

import pytest

from shared.foundation.content import Subject
from shared.lifecycle import erasure, removal
from shared.lifecycle.erased_rows import Owner
from tests.agent import Agent
from tests.conftest import Gateway
from tests.draining import process_all
from tests.integration.forgetting.conftest import records_with
from tests.second_gateway import NO_REDIS, NOWHERE, beside
from tests.state import StateInspector

SECRET = "marmalade"


async def fill(agent: Agent, user: str = "ada", **session_fields: Any) -> str:
    """Store something of a user in every database, and return the session."""
    session = await agent.session(user_id=user, store_types=["tmp"], **session_fields)
    await agent.save(f"The jar holds {SECRET}.", user_id=user)
    await agent.context(session, f"Where is the {SECRET}?", idempotency_key="k")
    await agent.request("PUT", f"/v1/sessions/{session}/kv/note", json={"value": SECRET})
    namespace = (await agent.request("GET", f"/v1/sessions/{session}"))["namespace"]
    await agent.put(f"{namespace}/note", SECRET)
    await agent.request("PUT", f"/v1/stores/pad/kv/note?user_id={user}", json={"value": SECRET})
    return session


async def test_with_redis_away_an_erasure_is_pending_and_the_sweep_finishes_it(
    agent: Agent, gateway: Gateway, inspector: StateInspector
) -> None:
    await fill(agent)
    async with beside(gateway, **NO_REDIS) as cut_off:
        receipt = await cut_off.request("DELETE", "/v1/users/ada")
        assert receipt["stores"] == {"postgres": "done", "redis": "pending", "qdrant": "done"}
        repeated = await cut_off.request("DELETE", "/v1/users/ada")
        assert (repeated["id"], repeated["stores"]) == (receipt["id"], receipt["stores"]), (
            "never done with zeros"
        )
    assert await records_with(inspector, gateway, SECRET) != []
    pending = await agent.request("GET", f"/v1/erasures/{receipt['id']}")
    assert (pending["state"], pending["stores"]["redis"]) == ("pending", "pending")
    await process_all(gateway.resources)
    assert await records_with(inspector, gateway, SECRET) == []
    done = await agent.request("GET", f"/v1/erasures/{receipt['id']}")
    assert (done["state"], done["stores"]["redis"]) == ("done", "done")
    assert (done["erased"]["working_entries"], done["erased"]["scratch_stores"]) == (1, 1)
    assert await agent.request("DELETE", "/v1/users/ada") == done | {"user_id": "ada"}


async def test_with_qdrant_away_an_erasure_is_pending_and_the_sweep_finishes_it(
    agent: Agent, gateway: Gateway, inspector: StateInspector
) -> None:
    await fill(agent)
    await gateway.resources.index_writer.close()
    async with beside(gateway, qdrant_url=f"http://{NOWHERE}") as cut_off:
        receipt = await cut_off.request("DELETE", "/v1/users/ada")
        assert receipt["stores"] == {"postgres": "done", "redis": "done", "qdrant": "pending"}
    left = [name for name in await records_with(inspector, gateway, "ada") if name.startswith("loci_")]
    assert left != []
    await process_all(gateway.resources)
    left = [name for name in await records_with(inspector, gateway, "ada") if name.startswith("loci_")]
    assert left == []
    assert (await agent.request("GET", f"/v1/erasures/{receipt['id']}"))["state"] == "done"


@pytest.mark.parametrize("path", ["/v1/users/ada", "/v1/sessions/trip", "/v1/agents/default"])
async def test_a_gateway_killed_after_its_commit_leaves_the_rest_to_a_worker(
    agent: Agent,
    gateway: Gateway,
    inspector: StateInspector,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
) -> None:
    await fill(agent, id="trip")
    await gateway.resources.index_writer.close()

    class Killed(BaseException):
        pass

    async def die(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(removal, "work_off", die)
        with pytest.raises(Killed):
            await agent.client.delete(path)
    await process_all(gateway.resources)
    texts = await records_with(inspector, gateway, SECRET)
    if path == "/v1/sessions/trip":  # the user's own memory and scratch store stay
        texts = [name for name in texts if "trip" in name]
    assert texts == []


async def test_a_session_deleted_first_leaves_no_working_memory_for_the_next_of_its_name(
    agent: Agent, gateway: Gateway, inspector: StateInspector
) -> None:
    session = await agent.session(user_id="ada", id="trip")
    await agent.put("session/trip/note", SECRET)
    await agent.request("DELETE", f"/v1/sessions/{session}")
    assert await records_with(inspector, gateway, SECRET) == []
    receipt = await agent.request("DELETE", "/v1/users/ada")
    assert receipt["stores"]["redis"] == "done"


@pytest.mark.parametrize("kind", ["patrol", "subagent"])
async def test_the_working_memory_of_a_deleted_patrol_stays_until_its_user_is_erased(
    agent: Agent, gateway: Gateway, inspector: StateInspector, kind: str
) -> None:
    session = await agent.session(user_id="ada", kind=kind, name="nightly")
    await agent.put(f"{kind}/nightly/finding", SECRET)
    await agent.request("DELETE", f"/v1/sessions/{session}")
    assert await agent.list_keys(kind) == [f"{kind}/nightly/finding"]
    await agent.request("DELETE", "/v1/users/ada")
    await process_all(gateway.resources)
    assert await records_with(inspector, gateway, SECRET) == []


async def test_a_session_of_the_same_id_waits_until_the_old_one_is_removed_everywhere(
    agent: Agent, gateway: Gateway
) -> None:
    await fill(agent, id="trip")
    async with beside(gateway, **NO_REDIS) as cut_off:
        await cut_off.request("DELETE", "/v1/sessions/trip")
    response = await agent.client.post("/v1/sessions", json={"id": "trip"})
    assert (response.status_code, "retry-after" in response.headers) == (HTTPStatus.CONFLICT, True)
    await process_all(gateway.resources)
    await agent.session(id="trip")


async def test_a_turn_that_reaches_the_window_after_the_deletion_is_removed_too(
    agent: Agent, gateway: Gateway, inspector: StateInspector
) -> None:
    """A turn is added to the cached window after its commit, perhaps later than its session is deleted."""
    session = await agent.session(id="trip")
    await agent.append_turn(session, SECRET)
    redis, key = (
        gateway.resources.redis,
        f"{gateway.resources.settings.prefix}:window:{{{gateway.tenant}:trip}}",
    )
    members = await redis.zrange(key, 0, -1, withscores=True)
    await agent.request("DELETE", f"/v1/sessions/{session}")
    assert await redis.exists(key) == 0
    await redis.zadd(key, {str(pair[0]): float(pair[1]) for pair in members})
    await process_all(gateway.resources)
    assert await records_with(inspector, gateway, SECRET) == []


async def test_two_requests_at_once_answer_one_receipt(agent: Agent) -> None:
    await fill(agent)
    receipts = await asyncio.gather(*(agent.request("DELETE", "/v1/users/ada") for _ in range(3)))
    assert len({receipt["id"] for receipt in receipts}) == 1
    assert receipts[0]["erased"]["memories"] == 1


async def test_a_new_record_of_an_erased_user_is_erased_with_a_receipt_of_its_own(agent: Agent) -> None:
    await fill(agent)
    first = await agent.request("DELETE", "/v1/users/ada")
    await agent.save("Ada is back.", user_id="ada")
    second = await agent.request("DELETE", "/v1/users/ada")
    assert first["id"] != second["id"]
    assert (first["digest"], second["erased"]["memories"]) == (second["digest"], 1)


async def test_a_receipt_names_nobody_and_other_tenants_do_not_see_it(agent: Agent, gateway: Gateway) -> None:
    await agent.save("Ada likes trains.", user_id="ada@example.org")
    receipt = await agent.request("DELETE", "/v1/users/ada@example.org")
    response = await agent.client.get(f"/v1/erasures/{receipt['id']}")
    assert "example.org" not in response.text
    async with await gateway.new_client(f"{gateway.tenant}-other") as other:
        assert (await other.get(f"/v1/erasures/{receipt['id']}")).status_code == HTTPStatus.NOT_FOUND
    async with await gateway.new_client(user_id="bob") as bound:
        assert (await bound.get(f"/v1/erasures/{receipt['id']}")).status_code == HTTPStatus.NOT_FOUND
    async with await gateway.new_client(user_id="ada@example.org") as bound:
        assert (await bound.get(f"/v1/erasures/{receipt['id']}")).status_code == HTTPStatus.OK


async def test_more_rows_than_a_request_may_delete_are_deleted_by_a_job(
    agent: Agent, gateway: Gateway, inspector: StateInspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure, "MAX_ROWS_PER_REQUEST", 5)
    monkeypatch.setattr(erasure, "_BATCH", 4)
    for number in range(10):
        await agent.save(f"Jar {number} holds {SECRET}.", user_id="ada")
    await fill(agent)
    receipt = await agent.request("DELETE", "/v1/users/ada", status=HTTPStatus.ACCEPTED)
    assert receipt["stores"] == {"postgres": "pending", "redis": "pending", "qdrant": "pending"}
    repeated = await agent.request("DELETE", "/v1/users/ada", status=HTTPStatus.ACCEPTED)
    assert repeated["id"] == receipt["id"]
    await process_all(gateway.resources)
    done = await agent.request("GET", f"/v1/erasures/{receipt['id']}")
    assert (done["state"], done["erased"]["memories"], done["erased"]["sessions"]) == ("done", 11, 1)
    assert await records_with(inspector, gateway, SECRET) == []
    assert await records_with(inspector, gateway, '"ada"') == []


async def test_deleting_an_agent_erases_all_of_its_records_and_none_of_others(
    agent: Agent, gateway: Gateway, inspector: StateInspector
) -> None:
    await fill(agent, user="ada", agent_id="helper", id="trip")
    await agent.request("PUT", "/v1/agents/helper", json={"public_key": "k", "document": SECRET})
    await agent.request("PUT", "/v1/agents/helper/kv/note", json={"value": SECRET})
    text = {"content": SECRET}
    await agent.client.post("/v1/agents/helper/texts", json=text, headers={"idempotency-key": "t"})
    await agent.client.put("/v1/agents/helper/files/a.txt", content=SECRET.encode())
    await agent.save(f"{SECRET} of the helper", agent_id="helper")
    other = await agent.save("The other agent's memory.", agent_id="other")
    receipt = await agent.request("DELETE", "/v1/agents/helper")
    assert receipt["subject"] == "agent"
    erased = receipt["erased"]
    assert (erased["memories"], erased["sessions"], erased["texts"], erased["files"]) == (1, 1, 1, 1)
    await agent.request("GET", "/v1/agents/helper", status=HTTPStatus.NOT_FOUND)
    await agent.memory(other["id"])
    kept = await records_with(inspector, gateway, SECRET)
    assert not any("helper" in name or name.startswith(("agent", "state", "turn")) for name in kept)


def test_an_owner_is_named_by_the_column_of_its_subject() -> None:
    assert Owner(Subject.USER, "ada").column == {"user_id": "ada"}
    assert Owner(Subject.AGENT, "helper").column == {"agent_id": "helper"}
