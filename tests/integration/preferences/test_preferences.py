"""MM3: preferences are written, read, listed and deleted, as rules of a user or of an agent."""

import asyncio
from typing import Any

import pytest

from tests.agent import Agent, Json
from tests.badinput import problem
from tests.conftest import Gateway
from tests.integration.preferences.conftest import URL, put, resolve, rule, slots

REPORT = rule("depth", "thorough", flow="report", description="The board meets.")


async def test_a_rule_is_returned_as_it_was_sent_and_replaced_under_its_version(
    agent: Agent, scope: Json
) -> None:
    body = {
        "condition": {"flow": "report"},
        "effect": {"slot": "length", "value": {"pages": [1, 2.5, False]}, "template": "In verse."},
        "related": ["tone", "tone", "form/letters"],
    }
    created = await put(agent, "style/length", body, if_none_match="*", **scope)
    assert created["condition"] == body["condition"]
    assert created["effect"] == body["effect"]
    assert created["related"] == ["tone", "form/letters"]
    assert created.items() >= {"key": "style/length", "state": "active", "basis": "explicit", **scope}.items()
    assert await agent.request("GET", f"{URL}/style/length", params=scope) == created
    await put(agent, "style/length", REPORT, status=412, if_none_match="*", **scope)
    replaced = await put(agent, "style/length", REPORT, if_match=f'"{created["version"]}"', **scope)
    assert replaced["effect"] == REPORT["effect"]
    assert replaced["version"] > created["version"]
    await put(agent, "style/length", body, status=412, if_match=f'"{created["version"]}"', **scope)
    listed = await agent.request("GET", URL, params=scope)
    assert listed == {"results": [replaced], "next_cursor": None}


async def test_a_deleted_rule_is_gone_and_may_be_written_again(agent: Agent, scope: Json) -> None:
    await put(agent, "depth", REPORT, **scope)
    for deleted in (True, False):
        answer = await agent.request("DELETE", f"{URL}/depth", params=scope)
        assert answer == {"key": "depth", "deleted": deleted}
    await agent.request("GET", f"{URL}/depth", params=scope, status=404)
    assert await slots(agent, situation="the board meets", **scope) == {}
    await put(agent, "depth", REPORT, if_none_match="*", **scope)
    assert await slots(agent, situation="the board meets", **scope) == {"depth": "thorough"}


async def test_a_users_own_rule_stands_before_the_agents_under_its_key(agent: Agent, scope: Json) -> None:
    of_agent = {"agent_id": scope["agent_id"]}
    await put(agent, "depth", rule("depth", "brief", flow="report"), **of_agent)
    await put(agent, "tone", rule("tone", "kind", flow="report"), **of_agent)
    assert await slots(agent, flow="report", **scope) == {"depth": "brief", "tone": "kind"}
    await put(agent, "depth", rule("depth", "long", flow="analyze"), **scope)
    assert await slots(agent, flow="report", **scope) == {"tone": "kind"}
    assert await slots(agent, flow="report", **of_agent) == {"depth": "brief", "tone": "kind"}
    assert await slots(agent, flow="report", **of_agent, user_id="bob") == {"depth": "brief", "tone": "kind"}
    listed = await agent.request("GET", URL, params={**scope, "limit": 2})
    rest = await agent.request("GET", URL, params={**scope, "cursor": listed["next_cursor"]})
    assert [(row["key"], row["user_id"]) for row in [*listed["results"], *rest["results"]]] == [
        ("depth", None),
        ("tone", None),
        ("depth", "ada"),
    ]


async def test_an_onboarding_writes_its_answers_in_one_batch(agent: Agent, scope: Json) -> None:
    """MM5: the operations of a batch are requests, so each answer is checked and reported by itself."""
    answers = [REPORT, rule("tone", "formal", flow="report"), rule("tone", None, flow="report")]
    operations = [
        {"method": "PUT", "path": f"{URL}/{key}", "body": {**answer, **scope}}
        for key, answer in zip(("depth", "tone", "bad"), answers, strict=True)
    ]
    batch = await agent.request("POST", "/v1/batch", json={"operations": operations})
    assert [result["status"] for result in batch["results"]] == [200, 200, 422]
    assert await slots(agent, flow="report", **scope) == {"depth": "thorough", "tone": "formal"}


async def test_concurrent_writers_of_a_key_leave_one_rule(agent: Agent, scope: Json) -> None:
    bodies = [rule("depth", number, flow="report", description="The board meets.") for number in range(12)]
    await asyncio.gather(*[put(agent, "depth", body, **scope) for body in bodies])
    [stored] = (await agent.request("GET", URL, params=scope))["results"]
    assert stored["effect"] in [body["effect"] for body in bodies]
    assert await slots(agent, situation="the board meets", **scope) == {"depth": stored["effect"]["value"]}


@pytest.mark.parametrize(
    ("change", "field", "text"),
    [
        ({"condition": {}}, "condition", "a flow or a description"),
        ({"condition": {"flow": " "}}, "condition.flow", "ASCII letters"),
        ({"condition": {"flow": "a\nb"}}, "condition.flow", "ASCII letters"),
        ({"condition": {"flow": "a flow"}}, "condition.flow", "begin with a letter or digit"),
        ({"condition": {"flow": "flöw"}}, "condition.flow", "ASCII letters"),
        ({"condition": {"flow": "f" * 65}}, "condition.flow", "64"),
        ({"condition": {"description": "d" * 4001}}, "condition.description", "4000"),
        ({"condition": {"flow": "f", "when": "x"}}, "condition.when", ""),
        ({"effect": {}}, "effect", "a slot with its value, or a template"),
        ({"effect": {"slot": "s"}}, "effect", "together"),
        ({"effect": {"value": 1, "template": "t"}}, "effect", "together"),
        ({"effect": {"slot": "s", "value": 2**80}}, "effect.value", "64 bits"),
        ({"effect": {"slot": "s", "value": "v" * 32_800}}, "effect.value", "32768"),
        ({"effect": {"template": ""}}, "effect.template", "blank"),
        ({"related": ["a"] * 2 + [str(number) for number in range(65)]}, "related", "64 keys"),
        ({"related": ["a/../b"]}, "related.0", ".."),
    ],
)
async def test_a_rule_that_says_nothing_or_too_much_is_refused(
    gateway: Gateway, scope: Json, change: Json, field: str, text: str
) -> None:
    response = await gateway.client.put(f"{URL}/depth", json={**REPORT, **change, **scope})
    assert response.status_code in {413, 422}
    assert problem.names_violation(response, field, text), response.text


@pytest.mark.parametrize("key", ["a%2F..%2Fb", "a%0Ab", "%20a", "k" * 129])
async def test_a_key_is_one_line_without_dots_as_segments(gateway: Gateway, scope: Json, key: str) -> None:
    response = await gateway.client.put(f"{URL}/{key}", json={**REPORT, **scope})
    assert response.status_code in {413, 422}, response.text


@pytest.mark.parametrize(
    "body", [{}, {"flow": ""}, {"flow": "a flow"}, {"situation": " "}, {"flow": "f", "more": 1}]
)
async def test_a_question_names_a_flow_or_a_situation(agent: Agent, body: dict[str, Any]) -> None:
    await resolve(agent, status=422, **body)
