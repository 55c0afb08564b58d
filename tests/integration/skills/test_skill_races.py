"""DR10: of two that act on one proposal or one skill at once, each finds out what became of it."""

import asyncio
from functools import partial
from http import HTTPStatus

import pytest
from sqlalchemy import text

from shared.infra.transaction import Transaction
from tests.agent import Agent, Json, wait_until
from tests.conftest import Gateway
from tests.integration.dreams.conftest import model_gateway, run_dream  # noqa: F401  (a fixture)
from tests.integration.skills.conftest import URL, get, put
from tests.integration.skills.proposals import (
    BREAD,
    CONSOLIDATION,
    PROPOSALS,
    ROLLS,
    merge,
    names,
    proposals,
    propose_merge,
    reply,
)
from tests.locks import wait_until_blocked
from tests.standins.models import ModelServer


@pytest.fixture
def gateway(model_gateway: Gateway) -> Gateway:  # noqa: F811
    return model_gateway


@pytest.mark.parametrize("second", ["approve", "refuse"])
async def test_of_two_decisions_at_once_one_is_refused_as_decided_before(
    gateway: Gateway, agent: Agent, models: ModelServer, second: str
) -> None:
    _, proposal = await propose_merge(gateway, agent, models)
    path = f"{PROPOSALS}/{proposal['id']}"
    answers = await asyncio.gather(
        *(agent.client.post(path, json={"action": action}) for action in ("approve", second))
    )
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [HTTPStatus.OK, HTTPStatus.CONFLICT], [answer.text for answer in answers]
    [decided] = await proposals(agent, None)
    is_published = decided["state"] == "approved"
    assert await names(agent) == (["bake"] if is_published else ["bake-bread", "bake-rolls"])


async def test_publishing_beside_an_undo_leaves_the_skills_as_they_were(
    gateway: Gateway, agent: Agent, models: ModelServer
) -> None:
    run, proposal = await propose_merge(gateway, agent, models)
    path = f"{PROPOSALS}/{proposal['id']}"
    published, undone = await asyncio.gather(
        agent.client.post(path, json={"action": "approve"}),
        agent.client.post(f"/v1/dreams/{run['id']}/undo"),
    )
    assert undone.status_code == HTTPStatus.OK, undone.text
    assert published.status_code in {HTTPStatus.OK, HTTPStatus.CONFLICT}, published.text
    assert await names(agent) == ["bake-bread", "bake-rolls"]
    assert [item["state"] for item in await proposals(agent, None)] == ["expired"]


@pytest.mark.parametrize("write", ["delete", "put"])
async def test_publishing_beside_a_change_of_what_it_stands_for_loses_no_change(
    gateway: Gateway, agent: Agent, models: ModelServer, write: str
) -> None:
    _, proposal = await propose_merge(gateway, agent, models)
    body = None if write == "delete" else {"content": "Mine now."}
    published, written = await asyncio.gather(
        agent.client.post(f"{PROPOSALS}/{proposal['id']}", json={"action": "approve"}),
        agent.client.request(write.upper(), f"{URL}/bake-rolls", json=body),
    )
    assert written.status_code == HTTPStatus.OK
    assert published.status_code in {HTTPStatus.OK, HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND}
    if write == "put":
        assert (await get(agent, "bake-rolls"))["content"] == "Mine now."
    elif published.status_code == HTTPStatus.OK:
        assert await names(agent) == ["bake"]
    else:
        assert await names(agent) == ["bake-bread"]


@pytest.mark.parametrize("action", ["publish", "undo"])
async def test_an_erasure_beside_a_decision_leaves_no_skill_of_the_user(
    gateway: Gateway, agent: Agent, models: ModelServer, action: str
) -> None:
    """The decision waits for a skill that somebody holds, and the erasure comes meanwhile."""
    ada: Json = {"user_id": "ada"}
    for name, fields in (("bake-bread", BREAD), ("bake-rolls", ROLLS)):
        await put(agent, name, **fields, **ada)
    models.chat_default = reply(merge("bake-bread", "bake-rolls"))
    run = await run_dream(gateway, passes=CONSOLIDATION, **ada)
    [proposal] = (await agent.request("GET", PROPOSALS, params=ada | {"kind": "skill"}))["results"]
    publish = (f"{PROPOSALS}/{proposal['id']}", {"action": "approve"})
    if action == "undo":
        await agent.request("POST", publish[0], json=publish[1])
    path, body = publish if action == "publish" else (f"/v1/dreams/{run['id']}/undo", None)
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        held = "bake-rolls" if action == "publish" else "bake"
        await tx.execute(text("SELECT FROM skill WHERE name = :name FOR UPDATE"), {"name": held})
        decision = asyncio.create_task(agent.client.post(path, json=body))
        await wait_until_blocked(tx, decision)
        erasure = asyncio.create_task(agent.client.delete("/v1/users/ada"))
        await wait_until(partial(_are_waiting, tx, 2))
    answers = await asyncio.gather(decision, erasure)
    assert [answer.status_code for answer in answers] == [HTTPStatus.OK, HTTPStatus.OK]
    assert (await agent.request("GET", URL, params=ada))["results"] == []
    assert (await agent.request("GET", PROPOSALS, params=ada | {"kind": "skill"}))["results"] == []


async def _are_waiting(tx: Transaction, count: int) -> bool:
    waiting = text("SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted")
    return int(await tx.scalar(waiting) or 0) >= count
