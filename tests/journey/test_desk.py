"""Working memory: shared between sessions, patrols and subagents; a context names it, no more."""

import asyncio
import json
from collections import Counter
from http import HTTPStatus

from tests.journey.agent import Agent, Json, block, word
from tests.journey.conftest import NewAgent

LIMIT = 50
LARGE = "# Findings\n\n{secret}\n\n" + "All is well. " * 1500


async def test_cx2_the_inventory_names_what_lies_there_and_never_what_it_says(agent: Agent) -> None:
    secret, session = word(), await agent.session()
    key = f"session/{session}/emails"
    shelf = {"category": "email", "tags": ["inbox", "unread"]}
    await agent.put(key, f"three unread, {secret}", ttl_seconds=272, **shelf)
    context = await agent.context(session, f"Any mail about {secret}?", explain=True)
    given = block(context, "working_memory")
    assert given is not None
    assert given["ids"] == [key]
    line = next(one for one in given["text"].splitlines() if one.startswith(f"- {key}"))
    assert line.startswith(f"- {key}: expires in 4m")
    assert line.endswith("s, category: email, tags: inbox, unread")
    assert json.dumps(context).count(secret) == 1, "in the message itself, and nowhere else"
    assert secret in (await agent.ask("GET", f"/v1/working/{key}"))["value"]


async def test_cx1_a_context_shows_this_desk_the_agents_patrols_and_outlines_of_its_subagents(
    agent: Agent,
) -> None:
    session, other = await agent.session(), await agent.session()
    await agent.session(kind="patrol", name="mail")
    await agent.session(kind="subagent", name="scout")
    await agent.put(f"session/{session}/mine", "1")
    await agent.put(f"session/{other}/others", "2")
    await agent.put("patrol/mail/found", "3")
    await agent.put("subagent/scout/small", "4")
    await agent.put("subagent/scout/report", LARGE.format(secret="5"))
    context = await agent.context(session, "What is there?")
    assert ids(context, "working_memory") == [f"session/{session}/mine"]
    assert ids(context, "patrol") == ["patrol/mail/found"]
    assert ids(context, "subagents") == ["subagent/scout/report-index"]


def ids(context: Json, kind: str) -> list[str]:
    """Return what a block shows; nothing where there is no such block."""
    found = block(context, kind)
    return list(found["ids"]) if found else []


async def test_cx1_of_many_outlines_the_newest_and_the_best_match_are_shown(agent: Agent) -> None:
    subjects = ("tides", "birds", "wind", "stars")
    for subject in subjects:
        await agent.put(f"subagent/scout/{subject}", LARGE.format(secret=f"## About {subject}"))
    context = await agent.context(await agent.session(), "What about the birds?")
    assert ids(context, "subagents") == ["subagent/scout/stars-index", "subagent/scout/birds-index"]
    found = block(context, "subagents")
    assert found is not None
    assert "(2 others)" in found["text"]


async def test_cx1_another_agents_patrol_is_not_shown(agent: Agent) -> None:
    await agent.session(kind="patrol", name="theirs", agent_id="b")
    await agent.put("patrol/theirs/found", "1")
    assert ids(await agent.context(await agent.session(agent_id="a"), "News?"), "patrol") == []
    theirs = await agent.context(await agent.session(agent_id="b"), "News?")
    assert ids(theirs, "patrol") == ["patrol/theirs/found"]


async def test_cx1_a_patrol_sees_its_own_desk_and_neither_patrols_nor_subagents(agent: Agent) -> None:
    patrol = await agent.session(kind="patrol", name="mail")
    await agent.session(kind="patrol", name="news")
    await agent.put("patrol/mail/seen", "1")
    await agent.put("patrol/news/seen", "2")
    await agent.put("subagent/scout/report", LARGE.format(secret="3"))
    context = await agent.context(patrol, "What is new?")
    assert ids(context, "working_memory") == ["patrol/mail/seen"]
    assert {one["kind"] for one in context["blocks"]} == {"working_memory"}


async def test_wm3_twenty_writers_at_once_fill_fifty_places_and_no_more(agent: Agent) -> None:
    gate = asyncio.Semaphore(20)
    path = f"session/{await agent.session()}"

    async def write(place: int) -> tuple[int, str]:
        async with gate:
            answer = await agent.client.put(f"/v1/working/{path}/key-{place}", json={"value": str(place)})
        return answer.status_code, "" if answer.is_success else answer.json()["detail"]

    answers = await asyncio.gather(*(write(place) for place in range(80)))
    counted = Counter(status for status, _ in answers)
    assert counted == {HTTPStatus.OK: LIMIT, HTTPStatus.CONFLICT: 30}
    assert all("50" in detail for status, detail in answers if status == HTTPStatus.CONFLICT)
    kept = await agent.listed(path)
    assert len(kept) == LIMIT
    await agent.put(kept[0], "overwritten")
    await agent.ask("DELETE", f"/v1/working/{kept[1]}")
    await agent.put(f"{path}/at-last", "a place is free")
    await agent.ask("PUT", f"/v1/working/{path}/late", json={"value": ""}, status=HTTPStatus.CONFLICT)


async def test_wm6_what_was_put_on_a_desk_is_found_in_the_very_next_request(agent: Agent) -> None:
    secret = word()
    await agent.put("patrol/mail/note", f"remember the {secret}", tags=["reminder"])
    answer = await agent.ask("POST", "/v1/working/search", json={"query": secret, "prefix": "patrol"})
    assert [one["key"] for one in answer["results"]] == ["patrol/mail/note"]
    assert answer["stages"] == ["bm25"]


async def test_wm4_a_key_bound_to_a_desk_writes_there_alone_and_reads_elsewhere(
    agent: Agent, another: NewAgent
) -> None:
    await agent.put("patrol/mail/found", "1")
    bound = await another(agent.tenant, namespace="subagent/scout")
    assert (await bound.put("notes/first", "2"))["key"] == "subagent/scout/notes/first"
    assert (await bound.ask("GET", "/v1/working/patrol/mail/found"))["value"] == "1"
    body = {"value": "3"}
    await bound.ask("PUT", "/v1/working/patrol/mail/found", json=body, status=HTTPStatus.FORBIDDEN)
