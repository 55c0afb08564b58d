"""SE8: an agent's texts: pushed, listed in their order, replaced and cleared as a whole."""

from http import HTTPStatus
from typing import Any

import pytest
from uuid_utils import UUID

from tests.badinput import problem
from tests.integration.agents.conftest import ROOT
from tests.journey.agent import Agent, Json

TEXTS = f"{ROOT}/texts"


async def push(agent: Agent, content: str, **more: Any) -> Json:
    body = {"content": content, **more}
    return dict(await agent.ask("POST", TEXTS, json=body, status=HTTPStatus.CREATED))


async def contents(agent: Agent) -> list[str]:
    return [one["content"] for one in (await agent.ask("GET", TEXTS))["results"]]


async def test_a_text_is_pushed_read_and_deleted(agent: Agent) -> None:
    kept = await push(agent, "Be brief.\n\nAlways.", metadata={"kind": "rule"})
    assert (kept["content"], kept["metadata"]) == ("Be brief.\n\nAlways.", {"kind": "rule"})
    assert UUID(kept["id"]).version == 7
    assert await agent.ask("GET", f"{TEXTS}/{kept['id']}") == kept
    assert await agent.ask("DELETE", f"{TEXTS}/{kept['id']}") == {"id": kept["id"], "deleted": True}
    assert await agent.ask("DELETE", f"{TEXTS}/{kept['id']}") == {"id": kept["id"], "deleted": False}
    await agent.ask("GET", f"{TEXTS}/{kept['id']}", status=HTTPStatus.NOT_FOUND)


async def test_texts_are_listed_by_page_in_the_order_they_came(agent: Agent) -> None:
    told = [(await push(agent, f"text {n}"))["content"] for n in range(5)]
    seen, cursor, pages = [], None, 0
    while pages == 0 or cursor is not None:
        query = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = await agent.ask("GET", TEXTS, params=query)
        seen += [one["content"] for one in page["results"]]
        cursor, pages = page["next_cursor"], pages + 1
    assert (seen, pages) == (told, 3)


async def test_all_texts_are_replaced_at_once_and_keep_the_order_that_was_told(agent: Agent) -> None:
    for content in ("old", "older"):
        await push(agent, content)
    fresh = [f"new {n}" for n in range(20)]
    answer = await agent.ask("PUT", TEXTS, json={"texts": [{"content": one} for one in fresh]})
    assert [one["content"] for one in answer["results"]] == fresh
    assert await contents(agent) == fresh
    await push(agent, "last")
    assert (await contents(agent))[-1] == fresh[-1], "a page of twenty"
    assert (await agent.ask("PUT", TEXTS, json={"texts": []}))["results"] == []
    assert await contents(agent) == []


async def test_clearing_deletes_the_agents_texts_and_no_other_agents(agent: Agent) -> None:
    other = "/v1/agents/other/texts"
    await agent.ask("POST", other, json={"content": "theirs"}, status=HTTPStatus.CREATED)
    mine = [await push(agent, content) for content in ("one", "two")]
    assert (await agent.ask("DELETE", f"{other}/{mine[0]['id']}"))["deleted"] is False
    assert await agent.ask("DELETE", TEXTS) == {"deleted": 2}
    assert await agent.ask("DELETE", TEXTS) == {"deleted": 0}
    assert [one["content"] for one in (await agent.ask("GET", other))["results"]] == ["theirs"]


@pytest.mark.parametrize("clear", ["one", "all", "replace"])
async def test_the_same_push_sent_again_is_one_text_and_a_deleted_one_is_not_repeated(
    agent: Agent, clear: str
) -> None:
    headers = {"idempotency-key": "k"}
    sent = [await agent.client.post(TEXTS, json={"content": "once"}, headers=headers) for _ in range(2)]
    assert sent[0].json() == sent[1].json()
    assert await contents(agent) == ["once"]
    ways: dict[str, tuple[str, str, Any]] = {
        "one": ("DELETE", f"{TEXTS}/{sent[0].json()['id']}", None),
        "all": ("DELETE", TEXTS, None),
        "replace": ("PUT", TEXTS, {"texts": []}),
    }
    method, path, body = ways[clear]
    await agent.ask(method, path, json=body)
    again = await agent.client.post(TEXTS, json={"content": "once"}, headers=headers)
    assert again.status_code == HTTPStatus.CONFLICT
    assert "once" not in again.text


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
    assert problem.names(await agent.client.post(TEXTS, json=body), field, rule)
    await agent.ask("GET", ROOT, status=HTTPStatus.NOT_FOUND)


async def test_a_replacement_with_one_unfit_text_replaces_none_and_names_its_place(agent: Agent) -> None:
    await push(agent, "kept")
    refused = await agent.client.put(TEXTS, json={"texts": [{"content": "fine"}, {"content": " "}]})
    assert problem.names(refused, "texts.1.content", "blank")
    many = await agent.client.put(TEXTS, json={"texts": [{"content": "x"}] * 1001})
    assert problem.names(many, "texts", "at most 1000")
    assert await contents(agent) == ["kept"]
