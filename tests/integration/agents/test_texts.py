"""SE8: an agent's texts are added, listed in order, and replaced or cleared as a whole."""

from http import HTTPStatus
from typing import Any

import pytest
from uuid_utils import UUID

from tests.agent import Agent, Json
from tests.badinput import problem
from tests.integration.agents.conftest import PROFILE

TEXTS = f"{PROFILE}/texts"


async def push(agent: Agent, content: str, **more: Any) -> Json:
    body = {"content": content, **more}
    return dict(await agent.request("POST", TEXTS, json=body, status=HTTPStatus.CREATED))


async def contents(agent: Agent) -> list[str]:
    return [result["content"] for result in (await agent.request("GET", TEXTS))["results"]]


async def test_a_text_is_pushed_read_and_deleted(agent: Agent) -> None:
    text = await push(agent, "Be brief.\n\nAlways.", metadata={"kind": "rule"})
    assert (text["content"], text["metadata"]) == ("Be brief.\n\nAlways.", {"kind": "rule"})
    assert UUID(text["id"]).version == 7
    assert await agent.request("GET", f"{TEXTS}/{text['id']}") == text
    assert await agent.request("DELETE", f"{TEXTS}/{text['id']}") == {"id": text["id"], "deleted": True}
    assert await agent.request("DELETE", f"{TEXTS}/{text['id']}") == {"id": text["id"], "deleted": False}
    await agent.request("GET", f"{TEXTS}/{text['id']}", status=HTTPStatus.NOT_FOUND)


async def test_texts_are_listed_by_page_in_the_order_they_were_added(agent: Agent) -> None:
    pushed = [(await push(agent, f"text {n}"))["content"] for n in range(5)]
    contents_seen, cursor, pages = [], None, 0
    while pages == 0 or cursor is not None:
        query = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = await agent.request("GET", TEXTS, params=query)
        contents_seen += [result["content"] for result in page["results"]]
        cursor, pages = page["next_cursor"], pages + 1
    assert (contents_seen, pages) == (pushed, 3)


async def test_all_texts_are_replaced_at_once_in_the_given_order(agent: Agent) -> None:
    for content in ("old", "older"):
        await push(agent, content)
    new_contents = [f"new {n}" for n in range(20)]
    response = await agent.request("PUT", TEXTS, json={"texts": [{"content": text} for text in new_contents]})
    assert [text["content"] for text in response["results"]] == new_contents
    assert await contents(agent) == new_contents
    await push(agent, "last")
    assert (await contents(agent))[-1] == new_contents[-1], "a page of twenty"
    assert (await agent.request("PUT", TEXTS, json={"texts": []}))["results"] == []
    assert await contents(agent) == []


async def test_clearing_deletes_the_agents_texts_and_no_other_agents(agent: Agent) -> None:
    other = "/v1/agents/other/texts"
    await agent.request("POST", other, json={"content": "theirs"}, status=HTTPStatus.CREATED)
    own_texts = [await push(agent, content) for content in ("one", "two")]
    assert (await agent.request("DELETE", f"{other}/{own_texts[0]['id']}"))["deleted"] is False
    assert await agent.request("DELETE", TEXTS) == {"deleted": 2}
    assert await agent.request("DELETE", TEXTS) == {"deleted": 0}
    assert [result["content"] for result in (await agent.request("GET", other))["results"]] == ["theirs"]


@pytest.mark.parametrize("how", ["one", "all", "replace"])
async def test_the_same_push_sent_again_is_one_text_and_a_deleted_one_is_not_repeated(
    agent: Agent, how: str
) -> None:
    headers = {"idempotency-key": "k"}
    responses = [await agent.client.post(TEXTS, json={"content": "once"}, headers=headers) for _ in range(2)]
    assert responses[0].json() == responses[1].json()
    assert await contents(agent) == ["once"]
    requests: dict[str, tuple[str, str, Any]] = {
        "one": ("DELETE", f"{TEXTS}/{responses[0].json()['id']}", None),
        "all": ("DELETE", TEXTS, None),
        "replace": ("PUT", TEXTS, {"texts": []}),
    }
    method, path, body = requests[how]
    await agent.request(method, path, json=body)
    repeated = await agent.client.post(TEXTS, json={"content": "once"}, headers=headers)
    assert repeated.status_code == HTTPStatus.CONFLICT
    assert "once" not in repeated.text


@pytest.mark.parametrize(
    ("field", "rule", "body"),
    [
        ("content", "blank", {"content": " "}),
        ("content", "string", {"content": 1}),
        ("content", "Field required", {}),
        ("content", "at most 64000", {"content": "x" * 64_001}),
        ("metadata.k", "string", {"content": "x", "metadata": {"k": 1}}),
        ("metadata", "at most 64 pairs", {"content": "x", "metadata": {f"k{i}": "" for i in range(65)}}),
        ("colour", "Extra inputs", {"content": "x", "colour": "red"}),
        ("body", "NUL", {"content": "a\x00"}),
    ],
)
async def test_a_text_that_breaks_a_rule_is_refused_and_not_stored(
    agent: Agent, field: str, rule: str, body: dict[str, Any]
) -> None:
    assert problem.names_violation(await agent.client.post(TEXTS, json=body), field, rule)
    await agent.request("GET", PROFILE, status=HTTPStatus.NOT_FOUND)


async def test_a_replacement_with_one_invalid_text_replaces_none_and_names_its_position(agent: Agent) -> None:
    await push(agent, "kept")
    response = await agent.client.put(TEXTS, json={"texts": [{"content": "fine"}, {"content": " "}]})
    assert problem.names_violation(response, "texts.1.content", "blank")
    response = await agent.client.put(TEXTS, json={"texts": [{"content": "x"}] * 1001})
    assert problem.names_violation(response, "texts", "at most 1000")
    assert await contents(agent) == ["kept"]
