"""LT21: texts pinned for an agent or a user, their limits and versions, and the block `core`."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from shared.context import blocks
from shared.foundation import config
from tests.agent import Agent, Json, count_occurrences, find_block, random_word
from tests.conftest import Gateway, running_gateway

URL = "/v1/pinned"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_gateway(make_settings: Callable[..., config.Settings]) -> AsyncIterator[Gateway]:
    async with running_gateway(make_settings(), f"t-{uuid4().hex[:12]}") as gateway:
        yield gateway


@pytest.fixture
def gateway(shared_gateway: Gateway) -> Gateway:
    return shared_gateway


@pytest.fixture
def scope() -> Json:
    """An agent of its own for each test, and a user."""
    return {"agent_id": random_word(), "user_id": "ada"}


async def put(agent: Agent, name: str, content: str, status: int = 200, **more: Any) -> Json:
    headers = {key.replace("_", "-"): more.pop(key) for key in ("if_match", "if_none_match") if key in more}
    body = {"content": content, **more}
    return dict(await agent.request("PUT", f"{URL}/{name}", json=body, headers=headers, status=status))


async def core_of(agent: Agent, scope: Json, **more: Any) -> Json | None:
    context = await agent.context(await agent.session(**scope), "hello", **more)
    return find_block(context, "core")


async def test_pinned_texts_stand_right_after_the_callers_system_in_every_context_of_theirs(
    agent: Agent, scope: Json
) -> None:
    """The agent's first, then the user's, each in the order in which they were first pinned."""
    of_agent = {"agent_id": scope["agent_id"]}
    own = await put(agent, "diet", "Ada eats no meat.", **scope)
    common = await put(agent, "style", "Be kind.\nBe short.", **of_agent)
    await put(agent, "diet", "Bob eats everything.", **of_agent, user_id="bob")
    await put(agent, "style", "Another agent's.", agent_id=random_word())
    session = await agent.session(**scope)
    for message in ("hello", "and again"):
        context = await agent.context(session, message, system="You help.")
        expected = (
            f"{blocks.CORE}\n<memory-data>\n- [style]:\n  Be kind.\n  Be short.\n"
            "- [diet]:\n  Ada eats no meat.\n</memory-data>"
        )
        assert context["messages"][:2] == [
            {"role": "system", "content": "You help."},
            {"role": "system", "content": expected},
        ]
        ids = [common["id"], own["id"]]
        core = {"kind": "core", "text": expected, "ids": ids, "stability": "stable"}
        assert context["blocks"][0] == core
    assert "Ada" not in str(await core_of(agent, of_agent))


async def test_core_is_never_cut_and_cannot_be_left_out(agent: Agent, scope: Json) -> None:
    await put(agent, "long", "word " * 700, **scope)
    core = await core_of(agent, scope, max_tokens=1, blocks=["recalled"])
    assert core is not None
    assert core["text"].count("word") == 700


async def test_a_text_is_replaced_read_listed_and_deleted_by_its_name(agent: Agent, scope: Json) -> None:
    first = await put(agent, "style/letters", "Short.", **scope)
    assert (first["user_id"], first["agent_id"]) == ("ada", scope["agent_id"])
    same = await put(agent, "style/letters", "Short.", **scope)
    assert same == first, "the same content is no new version"
    second = await put(agent, "style/letters", "Long.", **scope)
    assert (second["id"], second["created_at"]) == (first["id"], first["created_at"])
    assert second["version"] > first["version"]
    assert await agent.request("GET", f"{URL}/style/letters", params=scope) == second
    await put(agent, "b", "common", agent_id=scope["agent_id"])
    pages = [await agent.request("GET", URL, params=scope | {"limit": "1"})]
    pages.append(
        await agent.request("GET", URL, params=scope | {"limit": "1", "cursor": pages[0]["next_cursor"]})
    )
    assert [[text["name"] for text in page["results"]] for page in pages] == [["style/letters"], ["b"]]
    assert pages[1]["next_cursor"] is None
    common = await agent.request("GET", URL, params={"agent_id": scope["agent_id"]})
    assert [text["name"] for text in common["results"]] == ["b"]
    for deleted in (True, False):
        response = await agent.request("DELETE", f"{URL}/style/letters", params=scope)
        assert response == {"name": "style/letters", "deleted": deleted}
    await agent.request("GET", f"{URL}/style/letters", params=scope, status=404)


async def test_a_users_own_text_is_read_before_the_agents_and_deleted_alone(
    agent: Agent, scope: Json
) -> None:
    await put(agent, "diet", "for all", agent_id=scope["agent_id"])
    await put(agent, "diet", "for ada", **scope)
    for content in ("for ada", "for all"):
        assert (await agent.request("GET", f"{URL}/diet", params=scope))["content"] == content
        await agent.request("DELETE", f"{URL}/diet", params=scope)
    assert (await agent.request("GET", f"{URL}/diet", params=scope))["user_id"] is None


async def test_lt23_a_write_may_name_the_version_that_it_replaces(agent: Agent, scope: Json) -> None:
    await put(agent, "a", "0", 412, **scope, if_match="*")
    first = await put(agent, "a", "1", **scope, if_none_match="*")
    await put(agent, "a", "2", 412, **scope, if_none_match="*")
    tag = f'"{first["version"]}"'
    await put(agent, "a", "2", **scope, if_match=tag)
    await put(agent, "a", "3", 412, **scope, if_match=tag)
    read = await agent.client.get(f"{URL}/a", params=scope)
    assert (read.json()["content"], read.headers["etag"]) == ("2", f'"{read.json()["version"]}"')
    known = {"if-none-match": read.headers["etag"]}
    assert (await agent.client.get(f"{URL}/a", params=scope, headers=known)).status_code == 304
    await agent.request("DELETE", f"{URL}/a", params=scope, headers={"if-match": tag}, status=412)
    await agent.request("DELETE", f"{URL}/a", params=scope, headers={"if-match": read.headers["etag"]})
    recreated = await put(agent, "a", "1", **scope)
    assert recreated["version"] > read.json()["version"], "an old version never comes back"


@pytest.mark.parametrize(
    ("name", "content", "field"),
    [
        ("a", "x" * 4001, "content"),
        ("a", " \n", "content"),
        ("n" * 129, "x", "name"),
        ("a b", "x", "name"),
        ("ä", "x", "name"),
        ("a//b", "x", "name"),
    ],
)
async def test_a_bad_name_or_content_is_refused_with_its_rule(
    agent: Agent, scope: Json, name: str, content: str, field: str
) -> None:
    status = 413 if len(name) > 128 else 422
    problem = await put(agent, name, content, status, **scope)
    assert problem["errors"][0]["field"] == field
    assert len(content) <= 4000 or "4000" in problem["errors"][0]["rule"]


async def test_no_context_may_have_more_than_eight_thousand_characters(agent: Agent, scope: Json) -> None:
    """The agent's texts count with those of the user who has most; characters, not bytes, count."""
    of_agent = {"agent_id": scope["agent_id"]}
    await put(agent, "a", "ä" * 4000, **scope)
    await put(agent, "b", "b" * 3000, **scope)
    await put(agent, "a", "a" * 2000, **of_agent, user_id="bob")
    refused = await put(agent, "c", "c" * 1001, 409, **of_agent)
    assert "8000" in refused["detail"]
    await put(agent, "c", "c" * 1000, **of_agent)
    await put(agent, "d", "d", 409, **scope)
    await put(agent, "b", "b" * 3001, 409, **scope)
    await put(agent, "b", "b" * 2999, **scope)
    await put(agent, "b", "b" * 4000, **of_agent, user_id="bob")
    await put(agent, "e", "e" * 4000, agent_id=random_word())


async def test_the_limit_holds_for_writers_at_the_same_time(agent: Agent, scope: Json) -> None:
    scopes = [{"agent_id": scope["agent_id"]}, scope]
    writes = [
        agent.client.put(f"{URL}/n{number}", json={"content": "x" * 3000, **scopes[number % 2]})
        for number in range(8)
    ]
    statuses = sorted(response.status_code for response in await asyncio.gather(*writes))
    assert statuses == [200, 200, *[409] * 6]


@pytest.mark.parametrize("change", ["PUT", "DELETE"])
async def test_a_stored_response_does_not_keep_what_was_changed_or_deleted(
    agent: Agent, scope: Json, change: str
) -> None:
    secret, key = random_word(), random_word()
    await put(agent, "a", secret, **scope)
    session = await agent.session(**scope)
    context = await agent.context(session, "hello", idempotency_key=key)
    assert count_occurrences(context, secret) == 1
    if change == "PUT":
        await put(agent, "a", "another", **scope)
    else:
        await agent.request("DELETE", f"{URL}/a", params=scope)
    path, headers = f"/v1/sessions/{session}/context", {"idempotency-key": key}
    repeated = await agent.client.post(path, json={"message": "hello"}, headers=headers)
    assert (repeated.status_code, secret in repeated.text) == (409, False)


@pytest.mark.parametrize("owner", ["user", "agent"])
async def test_erasing_a_user_or_an_agent_erases_its_pinned_texts(
    agent: Agent, scope: Json, owner: str
) -> None:
    scope = scope | {"user_id": random_word()}
    of_agent = {"agent_id": scope["agent_id"]}
    await put(agent, "own", "of the user", **scope)
    await put(agent, "common", "of the agent", **of_agent)
    receipt = await agent.request("DELETE", f"/v1/{owner}s/{scope[f'{owner}_id']}")
    assert receipt["erased"]["pinned_texts"] == {"user": 1, "agent": 2}[owner]
    left = await agent.request("GET", URL, params=scope)
    assert [text["name"] for text in left["results"]] == {"user": ["common"], "agent": []}[owner]
