"""Working memory is shared between sessions, patrols and subagents; a context shows keys without values."""

import asyncio
import json
from collections import Counter
from http import HTTPStatus

from tests.agent import Agent, Json, find_block, random_word
from tests.journey.conftest import NewAgent
from tests.journey.large_value import LARGE

LIMIT = 50


async def test_cx2_the_inventory_lists_entries_without_their_values(agent: Agent) -> None:
    secret, session = random_word(), await agent.session()
    key = f"session/{session}/emails"
    labels = {"category": "email", "tags": ["inbox", "unread"]}
    await agent.put(key, f"three unread, {secret}", ttl_seconds=272, **labels)
    context = await agent.context(session, f"Any mail about {secret}?", explain=True)
    inventory = find_block(context, "working_memory")
    assert inventory is not None
    assert inventory["ids"] == [key]
    line = next(text for text in inventory["text"].splitlines() if text.startswith(f"- {key}"))
    assert line.startswith(f"- {key}: expires in 4m")
    assert line.endswith("s, category: email, tags: inbox, unread")
    assert json.dumps(context).count(secret) == 1, "only in the message itself"
    assert secret in (await agent.request("GET", f"/v1/working/{key}"))["value"]


async def test_cx1_a_context_shows_the_sessions_entries_the_agents_patrols_and_outlines_of_its_subagents(
    agent: Agent,
) -> None:
    session, other = await agent.session(), await agent.session()
    await agent.session(kind="patrol", name="mail")
    await agent.session(kind="subagent", name="scout")
    await agent.put(f"session/{session}/note", "1")
    await agent.put(f"session/{other}/note", "2")
    await agent.put("patrol/mail/found", "3")
    await agent.put("subagent/scout/small", "4")
    await agent.put("subagent/scout/report", LARGE.format(secret="5"))
    context = await agent.context(session, "What is there?")
    assert ids(context, "working_memory") == [f"session/{session}/note"]
    assert ids(context, "patrol") == ["patrol/mail/found"]
    assert ids(context, "subagents") == ["subagent/scout/report-index"]


def ids(context: Json, kind: str) -> list[str]:
    """Return the ids in a block, or an empty list if there is no such block."""
    shown_block = find_block(context, kind)
    return list(shown_block["ids"]) if shown_block else []


async def test_cx1_of_many_outlines_the_newest_and_the_best_match_are_shown(agent: Agent) -> None:
    subjects = ("tides", "birds", "wind", "stars")
    for subject in subjects:
        await agent.put(f"subagent/scout/{subject}", LARGE.format(secret=f"## About {subject}"))
    context = await agent.context(await agent.session(), "What about the birds?")
    assert ids(context, "subagents") == ["subagent/scout/stars-index", "subagent/scout/birds-index"]
    outlines = find_block(context, "subagents")
    assert outlines is not None
    assert "(2 others)" in outlines["text"]


async def test_cx1_another_agents_patrol_is_not_shown(agent: Agent) -> None:
    await agent.session(kind="patrol", name="other", agent_id="b")
    await agent.put("patrol/other/found", "1")
    assert ids(await agent.context(await agent.session(agent_id="a"), "News?"), "patrol") == []
    context = await agent.context(await agent.session(agent_id="b"), "News?")
    assert ids(context, "patrol") == ["patrol/other/found"]


async def test_cx1_a_patrol_sees_its_own_entries_and_neither_patrols_nor_subagents(agent: Agent) -> None:
    patrol = await agent.session(kind="patrol", name="mail")
    await agent.session(kind="patrol", name="news")
    await agent.put("patrol/mail/seen", "1")
    await agent.put("patrol/news/seen", "2")
    await agent.put("subagent/scout/report", LARGE.format(secret="3"))
    context = await agent.context(patrol, "What is new?")
    assert ids(context, "working_memory") == ["patrol/mail/seen"]
    assert {shown_block["kind"] for shown_block in context["blocks"]} == {"working_memory"}


async def test_wm3_twenty_concurrent_writers_fill_a_namespace_to_its_limit_of_fifty(agent: Agent) -> None:
    writers = asyncio.Semaphore(20)
    path = f"session/{await agent.session()}"

    async def write(number: int) -> tuple[int, str]:
        async with writers:
            response = await agent.client.put(f"/v1/working/{path}/key-{number}", json={"value": str(number)})
        return response.status_code, "" if response.is_success else response.json()["detail"]

    responses = await asyncio.gather(*(write(number) for number in range(80)))
    status_counts = Counter(status for status, _ in responses)
    assert status_counts == {HTTPStatus.OK: LIMIT, HTTPStatus.CONFLICT: 30}
    assert all("50" in detail for status, detail in responses if status == HTTPStatus.CONFLICT)
    keys = await agent.list_keys(path)
    assert len(keys) == LIMIT
    await agent.put(keys[0], "overwritten")
    await agent.request("DELETE", f"/v1/working/{keys[1]}")
    await agent.put(f"{path}/one-more", "after a delete")
    await agent.request(
        "PUT", f"/v1/working/{path}/over-the-limit", json={"value": ""}, status=HTTPStatus.CONFLICT
    )


async def test_wm6_a_written_entry_is_found_by_the_next_request(agent: Agent) -> None:
    secret = random_word()
    await agent.put("patrol/mail/note", f"remember the {secret}", tags=["reminder"])
    response = await agent.request("POST", "/v1/working/search", json={"query": secret, "prefix": "patrol"})
    assert [entry["key"] for entry in response["results"]] == ["patrol/mail/note"]
    assert response["stages"] == ["bm25"]


async def test_wm4_a_key_bound_to_a_namespace_writes_only_there_and_reads_elsewhere(
    agent: Agent, new_agent: NewAgent
) -> None:
    await agent.put("patrol/mail/found", "1")
    bound_agent = await new_agent(agent.tenant, namespace="subagent/scout")
    assert (await bound_agent.put("notes/first", "2"))["key"] == "subagent/scout/notes/first"
    assert (await bound_agent.request("GET", "/v1/working/patrol/mail/found"))["value"] == "1"
    body = {"value": "3"}
    await bound_agent.request("PUT", "/v1/working/patrol/mail/found", json=body, status=HTTPStatus.FORBIDDEN)
