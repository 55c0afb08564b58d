"""SE9: turns are found across sessions by content, speaker, role, time and neighbour turns."""

from http import HTTPStatus
from typing import Any

from tests.agent import Agent, Json
from tests.conftest import Gateway, running_gateway

CONTENT = "It was the lantern by the harbour."


async def add_turn(agent: Agent, session: str, content: str, **fields: Any) -> None:
    """Report a turn."""
    body = {"role": "user", "content": content, **fields}
    await agent.request("POST", f"/v1/sessions/{session}/turns", json=body, status=HTTPStatus.CREATED)


async def search(agent: Agent, query: str, **fields: Any) -> list[Json]:
    response = await agent.request(
        "POST", "/v1/turns/search", json={"query": query, "explain": True, **fields}
    )
    assert (response["stages"], response["degraded"]) == (["bm25"], [])
    return list(response["results"])


async def test_turns_are_found_in_all_sessions_or_only_in_the_requested_one(agent: Agent) -> None:
    sessions = [await agent.session() for _ in range(3)]
    for session in sessions:
        await add_turn(agent, session, CONTENT)
    assert {result["session_id"] for result in await search(agent, "lantern")} == set(sessions)
    in_one_session = await search(agent, "lantern", session_id=sessions[1])
    assert [result["session_id"] for result in in_one_session] == [sessions[1]]


async def test_a_turn_of_the_speaker_named_in_the_query_ranks_first(agent: Agent) -> None:
    for speaker in ("Ben", "Melanie", "Tom"):
        await add_turn(agent, await agent.session(), CONTENT, speaker=speaker)
    best = (await search(agent, "What did Melanie add_turn of the lantern?"))[0]
    assert best["speaker"] == "Melanie"
    assert best["scores"]["name"] == 1


async def test_a_speakers_name_alone_finds_their_turns(agent: Agent) -> None:
    for speaker in ("Ben", "Melanie"):
        await add_turn(agent, await agent.session(), CONTENT, speaker=speaker)
    assert [result["speaker"] for result in await search(agent, "Melanie")] == ["Melanie"]


async def test_a_users_turn_ranks_first_when_the_question_is_about_the_asker(agent: Agent) -> None:
    for role in ("assistant", "user", "system"):
        await add_turn(agent, await agent.session(), CONTENT, role=role)
    best, *others = await search(agent, "Where was my lantern?")
    assert best["role"] == "user"
    assert best["scores"]["role"] == 1
    assert best["score"] > max(result["score"] for result in others)


async def test_a_turn_from_the_date_named_in_the_query_ranks_first(agent: Agent) -> None:
    for month in ("03", "05", "11"):
        await add_turn(agent, await agent.session(), CONTENT, created_at=f"2023-{month}-08T12:00:00Z")
    best = (await search(agent, "Which lantern was it on 8 May 2023?"))[0]
    assert best["created_at"].startswith("2023-05-08")
    assert best["scores"]["date"] == 1


async def test_a_time_filter_also_applies_to_neighbour_turns(agent: Agent) -> None:
    session = await agent.session()
    for month in ("03", "05", "11"):
        await add_turn(agent, session, CONTENT, created_at=f"2023-{month}-08T12:00:00Z")
    time_filter = {"created_after": "2023-04-01T00:00:00Z", "created_before": "2023-06-01T00:00:00Z"}
    assert [result["seq"] for result in await search(agent, "lantern", **time_filter)] == [2]


async def test_neighbour_turns_of_a_hit_are_found_even_if_they_share_no_word_with_the_query(
    agent: Agent,
) -> None:
    session, other = await agent.session(), await agent.session()
    for content in ("Hello.", "Where is the lantern?", "Behind the second shed.", "Thanks.", "Bye."):
        await add_turn(agent, session, content)
    await add_turn(agent, other, "Behind the second shed.")
    results = await search(agent, "lantern")
    assert results[0]["content"] == "Where is the lantern?"
    assert {(result["session_id"], result["seq"]) for result in results} == {
        (session, 1),
        (session, 2),
        (session, 3),
    }
    assert all(result["scores"]["near"] > 0 for result in results[1:])
    assert all(result["scores"]["keyword"] == 0 for result in results[1:])


async def test_without_the_index_turns_are_found_by_their_words_in_postgres(
    agent: Agent, gateway: Gateway
) -> None:
    sessions = [await agent.session() for _ in range(2)]
    for session in sessions:
        await add_turn(agent, session, "Where is the red lantern?")
        await add_turn(agent, session, "Behind the shed is a lantern.", speaker="Ben")
        await add_turn(agent, session, "Thanks.")
    settings = gateway.resources.settings.model_copy(update={"qdrant_url": "http://127.0.0.1:1"})
    async with running_gateway(settings, gateway.tenant) as served:
        without_index = Agent(served.client, served.tenant)
        fields = {"query": "red lantern", "session_id": sessions[1], "explain": True}
        response = await without_index.request("POST", "/v1/turns/search", json=fields)
    assert [(result["session_id"], result["seq"]) for result in response["results"]] == [
        (sessions[1], 1),
        (sessions[1], 2),
    ]
    assert response["results"][0]["scores"]["keyword"] == 1
    assert (response["stages"], response["degraded"]) == (["postgres"], ["index"])
