"""TR5: what is held is listed, approved, edited or refused, once, and only as it was when it was proposed."""

import asyncio
from http import HTTPStatus
from typing import Any

import pytest

from shared.memory.proposals.proposal import ProposalDraft, ProposalKind
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

CONFLICT, NOT_FOUND, FORBIDDEN = HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN


async def test_a_held_proposal_says_what_it_would_store_and_on_what_it_rests(
    gateway: Gateway, agent: Agent, scope: Json
) -> None:
    turn = await say(agent, scope)
    proposal_id = await hold_one(
        gateway, scope, fact(turn, category="home", tags=("move",), importance=0.7, signs=("negation",))
    )
    [proposal] = await listed(agent, scope)
    assert proposal == await agent.request("GET", f"{URL}/{proposal_id}")
    assert proposal["evidence"] == [{"session_id": turn[0], "seq": turn[1]}]
    expected = {
        "id": proposal_id,
        "kind": "fact",
        "state": "held",
        "text": "Ada lives in Rome.",
        "category": "home",
        "tags": ["move"],
        "importance": 0.7,
        "signs": ["negation"],
        **scope,
        "closes": None,
        "decided_by": None,
        "decided_at": None,
        "reason": None,
        "memory_id": None,
    }
    assert proposal.items() >= expected.items()
    assert await contents(agent, scope) == []


async def test_an_approved_proposal_is_the_memory_that_the_pass_would_have_stored(
    gateway: Gateway, agent: Agent, scope: Json
) -> None:
    turn = await say(agent, scope)
    proposal_id = await hold_one(gateway, scope, fact(turn, category="home", tags=("move",), importance=0.7))
    approved = await decide(agent, proposal_id, reason="I know her")
    memory = await agent.memory(approved["memory_id"])
    assert (approved["state"], approved["reason"]) == ("approved", "I know her")
    assert (memory["content"], memory["category"], memory["importance"]) == (
        "Ada lives in Rome.",
        "home",
        0.7,
    )
    assert (memory["decided_by"], memory["tags"]) == ("caller", ["move"])
    assert memory["source"] == {"session_id": turn[0], "seq": turn[1], "speaker": None, "role": "user"}
    [created] = await agent.history(memory["id"])
    assert (created["action"], created["reason"]) == ("created", "I know her")
    assert created["actor"] == approved["decided_by"]
    assert await agent.search_contents("Rome", **scope) == ["Ada lives in Rome."]


async def test_an_edited_text_is_stored_instead(gateway: Gateway, agent: Agent, scope: Json) -> None:
    proposal_id = await hold_one(gateway, scope, fact(await say(agent, scope), category="home"))
    approved = await decide(agent, proposal_id, edited="Ada moved to Rome.")
    memory = await agent.memory(approved["memory_id"])
    assert (memory["content"], memory["category"]) == ("Ada moved to Rome.", "home")
    assert await agent.search_contents("moved", **scope) == ["Ada moved to Rome."]


async def test_what_is_refused_is_stored_nowhere(gateway: Gateway, agent: Agent, scope: Json) -> None:
    proposal_id = await hold_one(gateway, scope, fact(await say(agent, scope)))
    refused = await decide(agent, proposal_id, "refuse", reason="a joke")
    assert (refused["state"], refused["memory_id"], refused["reason"]) == ("refused", None, "a joke")
    assert await contents(agent, scope) == []
    assert await listed(agent, scope, state="held") == []
    await decide(agent, await hold_one(gateway, scope, fact(await say(agent, scope))), "refuse")


@pytest.mark.parametrize("action", ["approve", "refuse"])
async def test_nobody_decides_twice(gateway: Gateway, agent: Agent, scope: Json, action: str) -> None:
    proposal_id = await hold_one(gateway, scope, fact(await say(agent, scope)))
    await decide(agent, proposal_id, action)
    for second_action in ("approve", "refuse"):
        problem = await decide(agent, proposal_id, second_action, status=CONFLICT)
        assert "already" in problem["detail"]


async def test_of_two_callers_at_once_one_decides(gateway: Gateway, agent: Agent, scope: Json) -> None:
    proposal_id = await hold_one(gateway, scope, fact(await say(agent, scope)))
    requests = [
        gateway.client.post(f"{URL}/{proposal_id}", json={"action": action})
        for action in ("approve", "refuse")
    ]
    responses = await asyncio.gather(*requests)
    assert sorted(response.status_code for response in responses) == [HTTPStatus.OK, CONFLICT]
    [decided] = [response.json() for response in responses if response.status_code == HTTPStatus.OK]
    expected = ["Ada lives in Rome."] if decided["state"] == "approved" else []
    assert await contents(agent, scope) == expected


async def test_a_repeated_request_gets_the_same_response(gateway: Gateway, agent: Agent, scope: Json) -> None:
    proposal_id = await hold_one(gateway, scope, fact(await say(agent, scope)))
    headers = {"idempotency-key": proposal_id}
    request: dict[str, Any] = {"json": {"action": "approve"}, "headers": headers}
    first = await agent.request("POST", f"{URL}/{proposal_id}", **request)
    assert await agent.request("POST", f"{URL}/{proposal_id}", **request) == first
    assert await contents(agent, scope) == ["Ada lives in Rome."]


async def test_an_approval_closes_what_the_fact_has_replaced(
    gateway: Gateway, agent: Agent, scope: Json
) -> None:
    old = await agent.save("Ada lives in Turin.", **scope)
    draft = fact(await say(agent, scope), occurred_at="2030-05-01T00:00:00Z", closes=old["id"])
    approved = await decide(agent, await hold_one(gateway, scope, draft))
    closed, new = await agent.memory(old["id"]), await agent.memory(approved["memory_id"])
    assert closed["valid_until"] == new["valid_from"] == "2030-05-01T00:00:00Z"
    assert closed["superseded_by"] == [new["id"]]
    assert [item["action"] for item in await agent.history(old["id"])] == ["created", "closed"]


async def test_statements_of_one_note_are_approved_one_after_the_other(
    gateway: Gateway, agent: Agent, scope: Json
) -> None:
    note = await agent.save("Ada moved to Rome and has a dog.", **scope)
    approved = [
        await decide(agent, await hold_one(gateway, scope, _of(ProposalKind.REWRITING, text, note)))
        for text in ("Ada moved to Rome.", "Ada has a dog.")
    ]
    archived = await agent.memory(note["id"])
    assert archived["superseded_by"] == [item["memory_id"] for item in approved]
    assert (archived["state"], archived["archived_by"]) == ("archived", "enrichment")
    assert sorted(await contents(agent, scope)) == ["Ada has a dog.", "Ada moved to Rome."]


async def test_a_merge_archives_its_sources(gateway: Gateway, agent: Agent, scope: Json) -> None:
    sources = [await agent.save(text, **scope) for text in ("Ada has a dog.", "The dog is Rex.")]
    draft = _of(ProposalKind.MERGE, "Ada has a dog, Rex.", *sources)
    approved = await decide(agent, await hold_one(gateway, scope, draft))
    assert (await agent.memory(approved["memory_id"]))["derived_from"] == [memory["id"] for memory in sources]
    for memory in sources:
        assert (await agent.memory(memory["id"]))["superseded_by"] == [approved["memory_id"]]


def _of(kind: ProposalKind, text: str, *memories: Json) -> ProposalDraft:
    """Return a draft that rests on memories and replaces them."""
    ids = tuple(memory["id"] for memory in memories)
    draft = fact(("", 0), text)
    row = {**draft.row, "sources": [], "derived_from": list(ids)}
    return ProposalDraft(kind, row, evidence_memory_ids=ids, replaces=ids)


@pytest.mark.parametrize("change", ["delete", "archive", "edit", "label"])
@pytest.mark.parametrize("kind", [ProposalKind.MERGE, ProposalKind.REWRITING])
async def test_nothing_is_stored_that_rests_on_a_memory_that_changed(
    gateway: Gateway, agent: Agent, scope: Json, change: str, kind: ProposalKind
) -> None:
    first, second = [await agent.save(text, **scope) for text in ("Ada has a dog.", "The dog is Rex.")]
    proposal_id = await hold_one(gateway, scope, _of(kind, "Ada has a dog, Rex.", first, second))
    path = f"/v1/memories/{second['id']}"
    if change == "delete":
        await agent.request("DELETE", path)
    elif change == "archive":
        await agent.request("POST", f"{path}/archive", json={})
    else:
        fields = {"content": "The dog is Tex."} if change == "edit" else {"importance": 0.9}
        await agent.request("PATCH", path, json=fields)
    await decide(agent, proposal_id, status=CONFLICT)
    assert (await agent.memory(first["id"]))["archived_at"] is None
    assert "Ada has a dog, Rex." not in await contents(agent, scope)
    assert (await decide(agent, proposal_id, "refuse"))["state"] == "refused"


@pytest.mark.parametrize("is_closed", [True, False])
async def test_nothing_closes_what_was_closed_or_deleted_since(
    gateway: Gateway, agent: Agent, scope: Json, *, is_closed: bool
) -> None:
    old = await agent.save("Ada lives in Turin.", **scope)
    proposal_id = await hold_one(gateway, scope, fact(await say(agent, scope), closes=old["id"]))
    other = await hold_one(
        gateway, scope, fact(await say(agent, scope), "Ada lives in Bari.", closes=old["id"])
    )
    if is_closed:
        await decide(agent, other)
    else:
        await agent.request("DELETE", f"/v1/memories/{old['id']}")
    await decide(agent, proposal_id, status=CONFLICT)
    assert "Ada lives in Rome." not in await contents(agent, scope)


async def test_a_text_that_was_deleted_since_is_not_approved(
    gateway: Gateway, agent: Agent, scope: Json
) -> None:
    proposal_id = await hold_one(gateway, scope, fact(await say(agent, scope)))
    memory = await agent.save("Ada lives in Rome.", **scope)
    await agent.request("DELETE", f"/v1/memories/{memory['id']}")
    await decide(agent, proposal_id, status=CONFLICT)
    assert await contents(agent, scope) == []


async def test_a_key_bound_to_a_user_sees_and_decides_its_own_alone(
    gateway: Gateway, agent: Agent, scope: Json
) -> None:
    own, others = scope, scope | {"user_id": "somebody"}
    common = {"agent_id": scope["agent_id"]}
    shown = await hold_one(gateway, own, fact(await say(agent, own)))
    hidden = [
        await hold_one(gateway, own, fact(await say(agent, others), "Ada has a dog.")),
        await hold_one(gateway, {**others}, fact(await say(agent, others), "Bob has a cat.")),
    ]
    of_nobody = await hold_one(gateway, own, fact(await say(agent, common), "Ada has a fish."))
    of_agent = await hold_one(gateway, common | {"user_id": None}, fact(await say(agent, common), "We bake."))
    async with await gateway.new_client(user_id=scope["user_id"]) as client:
        bound = Agent(client, gateway.tenant)
        ids = {proposal["id"] for proposal in await listed(bound, own)}
        assert ids == {shown, of_nobody, of_agent}
        for proposal_id in hidden:
            await bound.request("GET", f"{URL}/{proposal_id}", status=NOT_FOUND)
            await decide(bound, proposal_id, status=NOT_FOUND)
        for proposal_id in (of_nobody, of_agent):
            await decide(bound, proposal_id, status=FORBIDDEN)
        assert (await decide(bound, shown))["state"] == "approved"
    assert await contents(agent, own) == ["Ada lives in Rome."]
    states = {proposal["id"]: proposal["state"] for proposal in await listed(agent, own)}
    assert states == {shown: "approved", hidden[0]: "held", of_nobody: "held", of_agent: "held"}


async def test_pages_show_each_proposal_once_the_newest_first(
    gateway: Gateway, agent: Agent, scope: Json
) -> None:
    turn = await say(agent, scope)
    drafts = [fact(turn, f"Ada has {number} dogs.") for number in range(5)]
    ids = (await hold(gateway, scope, *drafts)).proposal_ids
    pages: list[str] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        page = await agent.request("GET", URL, params=scope | query)
        pages += [proposal["id"] for proposal in page["results"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert pages == ids[::-1]
    assert await listed(agent, scope, kind="merge") == []


async def test_a_refusal_has_no_text_and_an_edited_one_is_a_text(
    gateway: Gateway, agent: Agent, scope: Json
) -> None:
    proposal_id = await hold_one(gateway, scope, fact(await say(agent, scope)))
    invalid = HTTPStatus.UNPROCESSABLE_ENTITY
    await decide(agent, proposal_id, "refuse", edited="Ada lives in Bari.", status=invalid)
    await decide(agent, proposal_id, edited=" ", status=invalid)
    await decide(agent, "none", status=NOT_FOUND)
