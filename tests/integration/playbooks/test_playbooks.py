"""MM6: playbooks are recorded, found by flow or by what was asked, noted in the scratchpad, and forgotten."""

import asyncio
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from uuid import uuid4

import pytest

from shared.foundation import config
from tests.agent import Agent, Json
from tests.conftest import Gateway, running_gateway
from tests.draining import drain
from tests.integration.forgetting.conftest import records_with
from tests.integration.playbooks.conftest import PLAYBOOK, QUERY, find, found_ids, record
from tests.integration.scratchpad.conftest import note, snippets
from tests.standins.behaviours import Status
from tests.standins.models import ModelServer
from tests.state import StateInspector

SECRET = "persimmonia"


@pytest.fixture
async def embedding(
    make_settings: Callable[..., config.Settings], models: ModelServer
) -> AsyncIterator[Gateway]:
    """A gateway with an embedding model and no workers but those that a test runs."""
    settings = make_settings(
        apart=True, embedding_base_url=models.url, embedding_model="m", embedding_dimension=64
    )
    async with running_gateway(settings, f"t-{uuid4().hex[:12]}") as gateway:
        yield gateway


async def test_a_playbook_is_read_as_it_was_recorded(agent: Agent) -> None:
    playbook = await record(agent, user_id="ada")
    assert {name: playbook[name] for name in PLAYBOOK} == PLAYBOOK
    assert (playbook["promoted"], playbook["reason"]) == (True, "reported")
    assert await agent.request("GET", f"/v1/playbooks/{playbook['id']}") == playbook
    query = {"user_id": "ada", "flow": "book_flight", "promoted": "true"}
    listing = await agent.request("GET", "/v1/playbooks", params=query)
    assert listing == {"results": [playbook], "next_cursor": None}


async def test_a_flow_that_was_not_completed_is_recorded_and_not_promoted(agent: Agent) -> None:
    for outcome in ("failure", "Uncertain", "INVALID"):
        playbook = await record(agent, outcome=outcome, satisfied=True)
        assert (playbook["promoted"], playbook["reason"]) == (False, "not_completed")
    assert await found_ids(agent, flow="book_flight") == []


async def test_without_a_model_the_flow_or_the_same_words_find_it(agent: Agent) -> None:
    flight = (await record(agent))["id"]
    hotel = (await record(agent, flow_dact="book_hotel", user_query="A room in Lisbon?"))["id"]
    assert await found_ids(agent, flow="book_hotel") == [hotel]
    assert await found_ids(agent, query="please find me a FLIGHT to Lisbon, on friday") == [flight]
    assert await found_ids(agent, query="Find me a flight to Porto on Friday.") == []
    found = await find(agent, flow="book_hotel", query=QUERY)
    assert [(hit["id"], hit["because"]) for hit in found["results"]] == [
        (hotel, ["flow"]),
        (flight, ["same_words"]),
    ]
    assert (found["stages"], found["degraded"]) == (["flow", "words"], [])
    both = (await record(agent, flow_dact="book_hotel"))["id"]
    assert (await found_ids(agent, flow="book_hotel", query=QUERY))[0] == both


async def test_a_query_of_cosine_080_finds_it_and_one_below_does_not(embedding: Gateway) -> None:
    agent = Agent(embedding.client, embedding.tenant)
    playbook = await record(agent, user_query="one two three four five six seven eight nine ten")
    similar, other = "one two three four five six seven eight nine", "one two three"
    assert await found_ids(agent, query=similar) == []
    await drain(embedding.resources)
    found = await find(agent, query=similar)
    assert [(hit["id"], hit["because"]) for hit in found["results"]] == [(playbook["id"], ["similar_query"])]
    assert 0.80 <= found["results"][0]["score"] < 1
    assert found["stages"] == ["words", "dense"]
    assert await found_ids(agent, query=other) == []


async def test_while_the_model_is_away_the_same_words_find_it(
    embedding: Gateway, models: ModelServer
) -> None:
    agent = Agent(embedding.client, embedding.tenant)
    playbook = await record(agent)
    models.embedding_default = Status(500)
    found = await find(agent, query=QUERY)
    assert [hit["id"] for hit in found["results"]] == [playbook["id"]]
    assert (found["stages"], found["degraded"]) == (["words"], ["dense"])


async def test_the_best_match_stands_in_the_scratchpad_when_the_answer_arrives(
    agent: Agent, gateway: Gateway
) -> None:
    await record(agent, user_id="ada", flow_dact="other", user_query="Something else.")
    best = await record(agent, user_id="ada")
    session = await agent.session(user_id="ada")
    assert (await find(agent, flow="nothing", session_id=session))["snippet_id"] is None
    assert await snippets(agent, session) == []
    found = await find(agent, flow="book_flight", session_id=session)
    [snippet] = await snippets(agent, session)
    assert (snippet["id"], [hit["id"] for hit in found["results"]]) == (found["snippet_id"], [best["id"]])
    for part in ("book_flight", QUERY, "1. flights.search", "2. flights.book", "LIS"):
        assert part in snippet["content"]
    await find(agent, flow="book_flight", session_id=session)
    assert [snippet["count"] for snippet in await snippets(agent, session)] == [2]
    async with await gateway.new_client(rights=["read"]) as client:
        reader = Agent(client, gateway.tenant)
        await find(reader, flow="book_flight", session_id=session, status=HTTPStatus.FORBIDDEN)
        assert await found_ids(reader, flow="book_flight", user_id="ada") == [best["id"]]


async def test_a_session_sees_the_common_playbooks_and_those_of_its_user(agent: Agent) -> None:
    common, own = await record(agent), await record(agent, user_id="ada")
    await record(agent, user_id="bob")
    await record(agent, agent_id="other")
    session = await agent.session(user_id="ada")
    assert await found_ids(agent, flow="book_flight", session_id=session) == [own["id"], common["id"]]
    body = {"flow": "book_flight", "session_id": session, "user_id": "bob"}
    await find(agent, **body, status=HTTPStatus.UNPROCESSABLE_ENTITY)


async def test_a_deleted_playbook_leaves_no_copy(
    agent: Agent, inspector: StateInspector, gateway: Gateway
) -> None:
    playbook = await record(agent, user_query=f"What of the {SECRET}?")
    session = await agent.session()
    await note(agent, session, "Trains run hourly.")
    await find(agent, flow="book_flight", session_id=session)
    await note(agent, session, "Buses run hourly.")
    headers = {"idempotency-key": "k"}
    context = await agent.context(session, "hello", idempotency_key="k")
    assert SECRET in str(context)
    await agent.request("POST", "/v1/playbooks", json=PLAYBOOK, headers=headers, status=HTTPStatus.CREATED)
    answer = await agent.request("DELETE", f"/v1/playbooks/{playbook['id']}")
    assert answer == {"id": playbook["id"], "deleted": True}
    assert await records_with(inspector, gateway, SECRET) == []
    assert [s["content"] for s in await snippets(agent, session)] == [
        "Trains run hourly.",
        "Buses run hourly.",
    ]
    assert (await agent.request("DELETE", f"/v1/playbooks/{playbook['id']}"))["deleted"] is False


@pytest.mark.parametrize("path", ["/v1/users/ada", "/v1/agents/default", "/v1/sessions/talk"])
async def test_erasing_whom_it_is_of_erases_it(
    agent: Agent, inspector: StateInspector, gateway: Gateway, path: str
) -> None:
    session = await agent.session(id="talk", user_id="ada")
    # The point of a playbook has its flow in clear.
    secret: Json = {"flow_dact": SECRET, "user_query": f"What of the {SECRET}?"}
    places: list[Json] = [{"session_id": session}, {"user_id": "ada"}]
    if path == "/v1/sessions/talk":
        del places[1]
    for place in places:
        await record(agent, **secret, **place, satisfied=True)
    assert len(await found_ids(agent, flow=SECRET, user_id="ada")) == len(places)
    receipt = await agent.request("DELETE", path)
    assert receipt.get("erased", {"playbooks": 1})["playbooks"] == len(places)
    assert await records_with(inspector, gateway, SECRET) == []


async def test_a_match_that_is_deleted_meanwhile_is_noted_nowhere_or_deleted_with_it(
    agent: Agent, inspector: StateInspector, gateway: Gateway
) -> None:
    session = await agent.session()
    for number in range(8):
        playbook = await record(agent, user_query=f"What of the {SECRET} {number}?")
        await asyncio.gather(
            *(find(agent, flow="book_flight", session_id=session) for _ in range(3)),
            agent.request("DELETE", f"/v1/playbooks/{playbook['id']}"),
        )
        assert await records_with(inspector, gateway, SECRET) == []
