"""TR5: how long proposals wait, how many there may be, and what takes them away."""

import asyncio
from http import HTTPStatus
from typing import Any

import pytest

from shared.foundation.scope import Scope
from shared.memory.proposals import hold as hold_proposals
from shared.memory.proposals import queries
from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.integration.proposals.conftest import (
    URL,
    contents,
    decide,
    fact,
    hold,
    hold_one,
    listed,
    say,
)
from tests.sql import sql
from workers.sweep import retention

CONFLICT, NOT_FOUND = HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND


async def test_the_same_again_adds_its_evidence_and_nothing_else(
    gateway: Gateway, agent: Agent, scope: Json
) -> None:
    first, second = await say(agent, scope), await say(agent, scope, "Rome it is.")
    proposal_id = await hold_one(gateway, scope, fact(first, signs=("negation",)))
    for turn in (second, first):
        repeated = fact(turn, "ada  lives in ROME.", importance=0.9)
        assert (await hold(gateway, scope, repeated)).proposal_ids == [proposal_id]
    [proposal] = await listed(agent, scope)
    assert [(item["session_id"], item["seq"]) for item in proposal["evidence"]] == [first, second]
    assert (proposal["text"], proposal["importance"]) == ("Ada lives in Rome.", 0.5)
    old = await agent.save("Ada lives in Turin.", **scope)
    closing = await hold_one(gateway, scope, fact(first, closes=old["id"]))
    other = await hold_one(gateway, scope | {"user_id": "bob"}, fact(first))
    assert len({proposal_id, closing, other}) == 3


@pytest.mark.parametrize("change", ["edit", "delete", "session"])
async def test_a_proposal_goes_with_the_last_of_its_evidence(
    gateway: Gateway, agent: Agent, scope: Json, change: str
) -> None:
    first, second = await say(agent, scope), await say(agent, scope)
    alone = await hold_one(gateway, scope, fact(first))
    shared = await hold_one(gateway, scope, fact(first, "Ada has a dog.", second))
    path = f"/v1/sessions/{first[0]}" + ("" if change == "session" else f"/turns/{first[1]}")
    if change == "edit":
        await agent.request("PATCH", path, json={"content": "I moved to Bari."})
    else:
        await agent.request("DELETE", path)
    await agent.request("GET", f"{URL}/{alone}", status=NOT_FOUND)
    await decide(agent, alone, status=NOT_FOUND)
    await decide(agent, shared, status=CONFLICT)
    assert await contents(agent, scope) == []
    assert (await sql(gateway, "SELECT count(*) FROM proposal WHERE id = :id", id=alone))[0][0] == 0


async def test_a_proposal_that_rests_on_a_note_goes_when_the_note_says_something_else(
    gateway: Gateway, agent: Agent, scope: Json
) -> None:
    note = await agent.save("Ada moved to Rome.", **scope)
    draft = fact(("", 0), "Ada lives in Rome.")
    rewriting = type(draft)(draft.kind, draft.row, evidence_memory_ids=(note["id"],))
    proposal_id = await hold_one(gateway, scope, rewriting)
    await agent.request("PATCH", f"/v1/memories/{note['id']}", json={"content": "Ada moved to Bari."})
    await agent.request("GET", f"{URL}/{proposal_id}", status=NOT_FOUND)


async def test_what_rests_on_nothing_or_on_what_is_gone_is_not_held(
    gateway: Gateway, agent: Agent, scope: Json
) -> None:
    session, seq = await say(agent, scope)
    old = await agent.save("Ada lives in Turin.", **scope)
    await agent.request("DELETE", f"/v1/memories/{old['id']}")
    nothing = type(fact((session, seq)))(fact((session, seq)).kind, fact((session, seq)).row)
    drafts = [nothing, fact((session, seq + 1)), fact((session, seq), closes=old["id"])]
    held = await hold(gateway, scope, *drafts)
    assert (held.proposal_ids, held.without_evidence) == ([], 3)


async def test_a_full_scope_holds_no_more_and_the_status_says_so(
    gateway: Gateway, agent: Agent, scope: Json
) -> None:
    turn = await say(agent, scope)
    drafts = [fact(turn, f"Ada has {number} dogs.") for number in range(1001)]
    held = await hold(gateway, scope, *drafts)
    assert (len(held.proposal_ids), held.over_limit) == (1000, 1)
    assert (await hold(gateway, scope, drafts[0])).over_limit == 0
    full = {**scope, "held": 1000}
    assert full in (await agent.request("GET", "/v1/status"))["proposals"]["mining_paused"]
    assert await _is_full(gateway, scope)
    async with await gateway.new_client(user_id="somebody") as client:
        status = await Agent(client, gateway.tenant).request("GET", "/v1/status")
        assert full not in status["proposals"]["mining_paused"]
    await decide(agent, held.proposal_ids[0], "refuse")
    assert not await _is_full(gateway, scope)
    assert (await hold(gateway, scope, drafts[1000])).over_limit == 0


async def _is_full(gateway: Gateway, scope: Json) -> bool:
    async with gateway.resources.transaction(gateway.tenant) as tx:
        settings = gateway.resources.settings
        return await hold_proposals.is_full(tx, settings, Scope(gateway.tenant, **scope))


async def test_two_passes_at_once_hold_no_more_than_there_may_be(
    gateway: Gateway, agent: Agent, scope: Json
) -> None:
    turn = await say(agent, scope)
    groups = [[fact(turn, f"Ada has {word} {n}.") for n in range(3)] for word in ("dog", "cat")]
    await asyncio.gather(*(hold(gateway, scope, *drafts, max_held=3) for drafts in groups))
    assert len(await listed(agent, scope)) == 3


async def test_what_nobody_decides_expires_and_goes_later(
    gateway: Gateway, agent: Agent, scope: Json
) -> None:
    turn = await say(agent, scope)
    proposal_id = await hold_one(gateway, scope, fact(turn))
    assert await _sweep(gateway) == 0
    await _age(gateway, proposal_id, "expires_at", days=1)
    assert await listed(agent, scope, state="held") == []
    await decide(agent, proposal_id, status=CONFLICT)
    assert await _sweep(gateway) == 0
    [expired] = await listed(agent, scope, state="expired")
    assert (expired["id"], expired["state"]) == (proposal_id, "expired")
    assert await hold_one(gateway, scope, fact(turn)) != proposal_id
    await _age(gateway, proposal_id, "decided_at", days=31)
    assert await _sweep(gateway) == 1
    await agent.request("GET", f"{URL}/{proposal_id}", status=NOT_FOUND)


async def _age(gateway: Gateway, proposal_id: str, column: str, days: int) -> None:
    statement = f"UPDATE proposal SET {column} = now() - make_interval(days => :days) WHERE id = :id"  # noqa: S608
    await sql(gateway, statement, id=proposal_id, days=days)


async def _sweep(gateway: Gateway) -> int:
    return (await retention.delete_old_rows(gateway.resources, gateway.tenant))["proposals"]


async def test_an_erased_user_takes_what_rests_on_its_turns_along(
    gateway: Gateway, agent: Agent, scope: Json
) -> None:
    other = scope | {"user_id": "somebody"}
    own, others = await say(agent, scope), await say(agent, other)
    gone = [
        await hold_one(gateway, scope, fact(own)),
        await hold_one(gateway, other, fact(others, "Ada has a dog.", own)),
    ]
    kept = await hold_one(gateway, other, fact(others, "Bob has a cat."))
    receipt = await agent.request("DELETE", f"/v1/users/{scope['user_id']}")
    assert receipt["erased"]["proposals"] == 2
    for proposal_id in gone:
        await agent.request("GET", f"{URL}/{proposal_id}", status=NOT_FOUND)
    assert [proposal["id"] for proposal in await listed(agent, other)] == [kept]


async def test_an_erasure_beside_an_approval_leaves_nothing(
    gateway: Gateway, agent: Agent, scope: Json
) -> None:
    proposal_id = await hold_one(gateway, scope, fact(await say(agent, scope)))
    approval = gateway.client.post(f"{URL}/{proposal_id}", json={"action": "approve"})
    erasure = agent.request("DELETE", f"/v1/users/{scope['user_id']}")
    response, _ = await asyncio.gather(approval, erasure)
    assert response.status_code in {HTTPStatus.OK, CONFLICT, NOT_FOUND}
    assert await contents(agent, scope) == []
    assert await listed(agent, scope) == []


async def test_a_deleted_turn_beside_an_approval_leaves_nothing(
    gateway: Gateway, agent: Agent, scope: Json
) -> None:
    session, seq = await say(agent, scope)
    proposal_id = await hold_one(gateway, scope, fact((session, seq)))
    approval = gateway.client.post(f"{URL}/{proposal_id}", json={"action": "approve"})
    deletion = gateway.client.delete(f"/v1/sessions/{session}/turns/{seq}")
    await asyncio.gather(approval, deletion)
    assert await contents(agent, scope) == []


async def test_the_response_to_a_decision_goes_with_the_turn_that_it_repeats(
    gateway: Gateway, agent: Agent, scope: Json
) -> None:
    session, seq = await say(agent, scope)
    proposal_id = await hold_one(gateway, scope, fact((session, seq)))
    request: dict[str, Any] = {"json": {"action": "refuse"}, "headers": {"idempotency-key": proposal_id}}
    await agent.request("POST", f"{URL}/{proposal_id}", **request)
    find = "SELECT body::text FROM idempotent_response WHERE :id = ANY (record_ids) OR body IS NULL"
    [row] = await sql(gateway, find, id=proposal_id)
    assert "Ada lives in Rome." in row[0]
    await agent.request("DELETE", f"/v1/sessions/{session}/turns/{seq}")
    assert {row[0] for row in await sql(gateway, find, id=proposal_id)} == {None}
    await agent.request("POST", f"{URL}/{proposal_id}", **request, status=NOT_FOUND)


async def test_a_judge_is_asked_once_about_what_waits(gateway: Gateway, agent: Agent, scope: Json) -> None:
    turn = await say(agent, scope)
    ids = (await hold(gateway, scope, fact(turn), fact(turn, "Ada has a dog."))).proposal_ids
    own = Scope(gateway.tenant, **scope)
    async with gateway.resources.transaction(gateway.tenant) as tx:
        await queries.note_asked(tx, ids[:1], "first")
        due = [proposal.id for proposal in await queries.list_due(tx, "first", 10, own)]
        assert due == ids[1:]
        assert [proposal.id for proposal in await queries.list_due(tx, "second", 10, own)] == ids
