"""SE9: turns are found across sessions by what was said, who said it, in which role, when, beside what."""

from http import HTTPStatus
from typing import Any

import pytest

from tests.conftest import Gateway
from tests.journey.agent import Agent, Json

SAID = "It was the lantern by the harbour."


@pytest.fixture
def agent(gateway: Gateway) -> Agent:
    """An agent whose key may do everything in a tenant of its own."""
    return Agent(gateway.client, gateway.tenant)


async def say(agent: Agent, session: str, content: str, **more: Any) -> None:
    """Report a turn with whatever is told of it."""
    body = {"role": "user", "content": content, **more}
    await agent.ask("POST", f"/v1/sessions/{session}/turns", json=body, status=HTTPStatus.CREATED)


async def search(agent: Agent, query: str, **more: Any) -> list[Json]:
    answer = await agent.ask("POST", "/v1/turns/search", json={"query": query, "explain": True, **more})
    assert (answer["stages"], answer["degraded"]) == (["bm25"], [])
    return list(answer["results"])


async def test_turns_of_several_sessions_are_found_and_one_session_alone_on_request(agent: Agent) -> None:
    sessions = [await agent.session() for _ in range(3)]
    for session in sessions:
        await say(agent, session, SAID)
    assert {one["session_id"] for one in await search(agent, "lantern")} == set(sessions)
    alone = await search(agent, "lantern", session_id=sessions[1])
    assert [one["session_id"] for one in alone] == [sessions[1]]


async def test_a_turn_of_the_speaker_that_is_named_comes_first(agent: Agent) -> None:
    for speaker in ("Ben", "Melanie", "Tom"):
        await say(agent, await agent.session(), SAID, speaker=speaker)
    best = (await search(agent, "What did Melanie say of the lantern?"))[0]
    assert best["speaker"] == "Melanie"
    assert best["scores"]["name"] == 1


async def test_a_speakers_name_alone_finds_what_they_said(agent: Agent) -> None:
    for speaker in ("Ben", "Melanie"):
        await say(agent, await agent.session(), SAID, speaker=speaker)
    assert [one["speaker"] for one in await search(agent, "Melanie")] == ["Melanie"]


async def test_what_the_user_said_comes_first_when_the_question_is_about_the_asker(agent: Agent) -> None:
    for role in ("assistant", "user", "system"):
        await say(agent, await agent.session(), SAID, role=role)
    best, *others = await search(agent, "Where was my lantern?")
    assert best["role"] == "user"
    assert best["scores"]["role"] == 1
    assert best["score"] > max(one["score"] for one in others)


async def test_a_turn_of_the_time_that_the_question_names_comes_first(agent: Agent) -> None:
    for month in ("03", "05", "11"):
        at = f"2023-{month}-08T12:00:00Z"
        await say(agent, await agent.session(), SAID, created_at=at)
    best = (await search(agent, "Which lantern was it on 8 May 2023?"))[0]
    assert best["created_at"].startswith("2023-05-08")
    assert best["scores"]["date"] == 1


async def test_a_search_keeps_to_a_range_of_time_neighbours_included(agent: Agent) -> None:
    session = await agent.session()
    for month in ("03", "05", "11"):
        await say(agent, session, SAID, created_at=f"2023-{month}-08T12:00:00Z")
    ranged = {"created_after": "2023-04-01T00:00:00Z", "created_before": "2023-06-01T00:00:00Z"}
    assert [one["seq"] for one in await search(agent, "lantern", **ranged)] == [2]


async def test_the_turn_beside_a_hit_is_answered_though_it_shares_no_word_with_the_query(
    agent: Agent,
) -> None:
    session, other = await agent.session(), await agent.session()
    for content in ("Hello.", "Where is the lantern?", "Behind the second shed.", "Thanks.", "Bye."):
        await say(agent, session, content)
    await say(agent, other, "Behind the second shed.")
    results = await search(agent, "lantern")
    assert results[0]["content"] == "Where is the lantern?"
    assert {(one["session_id"], one["seq"]) for one in results} == {(session, 1), (session, 2), (session, 3)}
    assert all(one["scores"]["near"] > 0 for one in results[1:])
    assert all(one["scores"]["keyword"] == 0 for one in results[1:])
