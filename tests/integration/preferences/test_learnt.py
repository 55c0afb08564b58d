"""MM5, DR6: what is promoted or inferred becomes a preference beside its memory, and goes with it."""

from http import HTTPStatus
from typing import Any

import pytest

from shared.foundation.stages import RecordKind
from tests.agent import Agent, Json, random_word
from tests.conftest import Gateway
from tests.draining import drain, make_due
from tests.integration.dreams.conftest import add_turns, run_dream
from tests.integration.preferences.conftest import URL, put, resolve, rule, slots
from tests.integration.preferences.marks import mark
from tests.integration.scratchpad.conftest import note, promote
from tests.standins.models import ModelServer

WISH = "Ada wants short answers."
MONEY = "Ada wants invoices over 500 euros to be paid only after she agreed."


async def infer(gateway: Gateway, models: ModelServer, content: str) -> Json:
    """Let a dream infer a wish of Ada's, and return its run."""
    session = await Agent(gateway.client, gateway.tenant).session(user_id="ada")
    await add_turns(gateway, session, content)
    models.chat_default = mark(session, content)
    run: Json = await run_dream(gateway, passes=["infer_preferences"], user_id="ada")
    await make_due(gateway.resources)
    await drain(gateway.resources)
    return run


async def preferences(agent: Agent, **query: Any) -> list[Json]:
    return list((await agent.request("GET", URL, params={"user_id": "ada", **query}))["results"])


async def points(gateway: Gateway) -> int:
    """Return the number of points of preferences."""
    index = gateway.resources.search_index
    collection = (await index.live(RecordKind.PREFERENCE)).collection
    condition = {"filter": {"must": [{"key": "tenant", "match": {"value": gateway.tenant}}]}, "exact": True}
    counted = await gateway.resources.qdrant.call("POST", f"collections/{collection}/points/count", condition)
    return int(counted["count"])


async def test_an_inferred_wish_applies_and_goes_with_the_undo_of_its_run(
    dreaming: Gateway, models: ModelServer
) -> None:
    agent = Agent(dreaming.client, dreaming.tenant)
    run = await infer(dreaming, models, WISH)
    [saved] = (await agent.request("GET", "/v1/memories", params={"user_id": "ada"}))["results"]
    [preference] = await preferences(agent)
    assert preference["memory_id"] == saved["id"]
    expected = {"key": "inferred/wish", "basis": "dream", "state": "active"}
    assert preference.items() >= expected.items()
    answer = await resolve(agent, situation="She wants an answer, a short one.", user_id="ada")
    because = "the situation is about what it says"
    assert answer["applies"] == [
        {"key": "inferred/wish", "effect": {"slot": "wish", "value": WISH}, "because": because}
    ]
    assert await slots(agent, situation="short answers", user_id="bob") == {}
    assert await points(dreaming) == 1

    await agent.request("POST", f"/v1/dreams/{run['id']}/undo")

    assert await preferences(agent) == []
    assert await slots(agent, situation="short answers", user_id="ada") == {}
    assert await points(dreaming) == 0


async def test_a_wish_that_needs_permission_applies_when_the_users_key_grants_it(
    dreaming: Gateway, models: ModelServer
) -> None:
    agent = Agent(dreaming.client, dreaming.tenant)
    await infer(dreaming, models, MONEY)
    [preference] = await preferences(agent)
    assert (preference["state"], preference["requires_user_permission"]) == ("awaiting_permission", True)
    question = {"situation": "invoices of 600 euros are paid", "flow": "wish", "user_id": "ada"}
    assert await slots(agent, **question) == {}
    body = rule("wish", "ask first", description=MONEY, flow="wish")
    written = await put(agent, preference["key"], body, user_id="ada")
    assert (written["state"], written["basis"]) == ("awaiting_permission", "explicit")
    assert await slots(agent, **question) == {}
    async with await dreaming.new_client(user_id="ada") as client:
        granted = await put(Agent(client, dreaming.tenant), preference["key"], body)
    assert (granted["state"], granted["requires_user_permission"]) == ("active", True)
    assert await slots(agent, **question) == {"wish": "ask first"}


async def test_what_a_caller_wrote_over_an_inferred_wish_outlives_its_memory(
    dreaming: Gateway, models: ModelServer
) -> None:
    agent = Agent(dreaming.client, dreaming.tenant)
    await infer(dreaming, models, WISH)
    await note(agent, session := await agent.session(user_id="ada"), WISH)
    await promote(agent, session)
    assert [preference["key"] for preference in await preferences(agent)] == ["inferred/wish"]
    await put(agent, "inferred/wish", rule("wish", "long answers", flow="chat"), user_id="ada")
    [saved] = (await agent.request("GET", "/v1/memories", params={"user_id": "ada"}))["results"]
    await agent.request("DELETE", f"/v1/memories/{saved['id']}")
    assert await slots(agent, flow="chat", user_id="ada") == {"wish": "long answers"}


@pytest.mark.parametrize("how", ["memory", "user", "agent"])
async def test_a_promoted_snippet_is_found_at_once_and_goes_with_what_is_deleted(
    agent: Agent, gateway: Gateway, scope: Json, how: str
) -> None:
    scope["user_id"] = random_word()
    session = await agent.session(**scope)
    snippet = await note(agent, session, "Ada travels first class.")
    promotion = await promote(agent, session, ids=[snippet["id"]])
    await promote(agent, session, ids=[snippet["id"]])
    memory_id = promotion["results"][0]["memory_id"]
    [preference] = (await agent.request("GET", URL, params=scope))["results"]
    assert (preference["basis"], preference["memory_id"]) == ("promotion", memory_id)
    assert preference["condition"] == {}  # a wish is no condition of itself
    assert list((await slots(agent, situation="travel first class", **scope)).values()) == [
        "Ada travels first class."
    ]
    await put(agent, "own", rule("own", 1, description="the user's own rule"), **scope)
    before, gone = await points(gateway), 1 if how == "memory" else 2
    paths = {
        "memory": f"/v1/memories/{memory_id}",
        "user": f"/v1/users/{scope['user_id']}",
        "agent": f"/v1/agents/{scope['agent_id']}",
    }
    receipt = await agent.request("DELETE", paths[how])
    assert how == "memory" or receipt["erased"]["preferences"] == gone
    left = (await agent.request("GET", URL, params=scope))["results"]
    assert [preference["key"] for preference in left] == ["own"] * (2 - gone)
    assert await points(gateway) == before - gone


async def test_a_promotion_to_the_business_context_makes_no_preference(agent: Agent, scope: Json) -> None:
    session = await agent.session(**scope)
    await note(agent, session, "The office in Kiel opens at nine.")
    await promote(agent, session, to="business_context", status=HTTPStatus.OK)
    assert (await agent.request("GET", URL, params=scope))["results"] == []
