"""MM3, MM5: what two clients do to one preference at once, and what is forgotten beside a running pass."""

import asyncio
from collections import Counter
from http import HTTPStatus
from typing import Any

import pytest
from sqlalchemy import update

from shared.foundation.stages import DreamPass
from shared.infra.language_model import LanguageModel
from shared.memory.preferences.table import preference
from tests import run_pass, state
from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.draining import make_due
from tests.integration.dreams.conftest import add_turns
from tests.integration.forgetting.conftest import records_with
from tests.integration.preferences.conftest import URL, put, rule, slots
from tests.integration.preferences.marks import mark
from tests.locks import wait_until_blocked
from tests.standins.models import ModelServer

MEETING = "The board meets."
WISH = "Ada wants quincequince answers."


async def test_of_writers_with_one_version_one_succeeds(agent: Agent, scope: Json) -> None:
    first = await put(agent, "depth", rule("depth", 0, flow="report"), **scope)
    headers = {"if-match": f'"{first["version"]}"'}
    bodies = [{**rule("depth", number, flow="report"), **scope} for number in range(1, 9)]
    sent = [agent.client.put(f"{URL}/depth", json=body, headers=headers) for body in bodies]
    responses = await asyncio.gather(*sent)
    statuses = Counter(response.status_code for response in responses)
    assert statuses == {HTTPStatus.OK: 1, HTTPStatus.PRECONDITION_FAILED: 7}
    [winner] = [response.json() for response in responses if response.is_success]
    assert await slots(agent, flow="report", **scope) == {"depth": winner["effect"]["value"]}


async def test_a_writer_reads_the_version_that_a_writer_before_it_leaves(
    agent: Agent, gateway: Gateway, scope: Json
) -> None:
    first = await put(agent, "depth", rule("depth", 0, flow="report"), **scope)
    headers = {"if-match": f'"{first["version"]}"'}
    body = {**rule("depth", 1, flow="report"), **scope}
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        is_named = preference.c.agent_id == scope["agent_id"]
        await tx.execute(update(preference).where(is_named).values(version=preference.c.version + 1))
        sent = asyncio.ensure_future(agent.client.put(f"{URL}/depth", json=body, headers=headers))
        await wait_until_blocked(tx, sent)
    assert (await sent).status_code == HTTPStatus.PRECONDITION_FAILED


async def test_writers_beside_deletions_leave_a_rule_that_is_found_or_none(agent: Agent, scope: Json) -> None:
    body = {**rule("depth", 1, description=MEETING), **scope}
    for _ in range(3):
        puts = [agent.client.put(f"{URL}/depth", json=body) for _ in range(4)]
        deletions = [agent.client.delete(f"{URL}/depth", params=scope) for _ in range(4)]
        mixed = [request for pair in zip(puts, deletions, strict=True) for request in pair]
        assert {response.status_code for response in await asyncio.gather(*mixed)} == {HTTPStatus.OK}
        stored = (await agent.request("GET", URL, params=scope))["results"]
        found = await slots(agent, situation=MEETING.lower(), **scope)
        assert found == {row["effect"]["slot"]: row["effect"]["value"] for row in stored}
        await agent.client.delete(f"{URL}/depth", params=scope)
        assert await slots(agent, situation=MEETING.lower(), **scope) == {}


@pytest.mark.parametrize("path", ["/v1/users/ada", "/v1/sessions/talk"])
async def test_a_wish_that_a_pass_infers_while_its_source_is_deleted_is_dropped(
    dreaming: Gateway, models: ModelServer, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    session = await Agent(dreaming.client, dreaming.tenant).session(id="talk", user_id="ada")
    await add_turns(dreaming, session, WISH)
    models.chat_default = mark(session, WISH)
    complete = LanguageModel.complete

    async def complete_and_delete(self: LanguageModel, *arguments: Any, **more: Any) -> Any:
        reply = await complete(self, *arguments, **more)
        response = await dreaming.client.delete(path)
        assert response.is_success, response.text
        return reply

    monkeypatch.setattr(LanguageModel, "complete", complete_and_delete)
    body = {"passes": ["infer_preferences"], "user_id": "ada"}
    run = (await dreaming.client.post("/v1/dreams", json=body)).json()
    await make_due(dreaming.resources)
    await run_pass.run_pass(dreaming.resources, dreaming.tenant, run["id"], DreamPass.INFER_PREFERENCES)
    assert models.chat_calls, "the model was asked"
    assert (await dreaming.client.get(URL, params={"user_id": "ada"})).json()["results"] == []
    async with state.watching(dreaming.resources.settings) as inspector:
        assert await records_with(inspector, dreaming, "quincequince") == []
