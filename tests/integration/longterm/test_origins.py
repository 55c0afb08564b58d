"""Where memories and turns come from, and how far they are trusted: the server says it (GD6)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import pytest

from tests.agent import Agent, Json
from tests.conftest import Gateway

OPERATOR = {"rights": ("read", "write", "admin")}
TEXT = "Ada takes the train to Kiel."


@asynccontextmanager
async def agent_with(gateway: Gateway, **key: Any) -> AsyncIterator[Agent]:
    """Return the requests of a key of its own, with the usual rights."""
    async with await gateway.new_client(**{"rights": ("read", "write"), **key}) as client:
        yield Agent(client, gateway.tenant)


async def save(agent: Agent, content: str = TEXT, **more: Any) -> Json:
    """Save a memory and return its origin."""
    return dict((await agent.save(content, enrich=False, **more))["origin"])


async def append(agent: Agent, session: str, role: str, content: str = TEXT, **more: Any) -> tuple[int, Json]:
    """Append a turn; return its number and its origin."""
    path = f"/v1/sessions/{session}/turns"
    body = {"role": role, "content": content, **more}
    seq = (await agent.request("POST", path, json=body, status=HTTPStatus.CREATED))["seq"]
    return seq, dict((await agent.request("GET", f"{path}/{seq}"))["origin"])


@pytest.mark.parametrize(
    ("key", "trust"),
    [
        ({**OPERATOR}, "operator"),
        ({}, "agent"),
        ({"agent_id": "inn", **OPERATOR}, "agent"),
        ({"user_id": "ada", **OPERATOR}, "user"),
        ({"agent_id": "inn", "user_id": "ada"}, "user"),
    ],
)
async def test_a_save_is_trusted_as_its_key(gateway: Gateway, key: dict[str, Any], trust: str) -> None:
    async with agent_with(gateway, **key) as agent:
        memory = await agent.save(TEXT, enrich=False)
        assert memory["origin"] == {"channel": "api", "trust": trust}
        assert (await agent.memory(memory["id"]))["origin"] == memory["origin"]
        [hit] = (await agent.search("train"))["results"]
        assert hit["origin"] == memory["origin"]
        [created] = await agent.history(memory["id"])
        assert created["after"]["origin"]["trust"] == trust


async def test_a_caller_lowers_trust_and_never_raises_it(gateway: Gateway) -> None:
    async with agent_with(gateway) as agent:
        assert (await save(agent, trust="outside"))["trust"] == "outside"
        for trust in ("operator", "king", "AGENT"):
            body = {"content": "Raised.", "trust": trust}
            problem = await agent.request(
                "POST", "/v1/memories", json=body, status=HTTPStatus.UNPROCESSABLE_ENTITY
            )
            assert problem["errors"][0]["field"].endswith("trust")
        batch = {"memories": [{"content": "One.", "trust": "user"}, {"content": "Two.", "trust": "operator"}]}
        response = await agent.request("POST", "/v1/memories/batch", json=batch, status=HTTPStatus.CREATED)
        lowered, refused = response["results"]
        assert (lowered["origin"]["trust"], refused["status"]) == ("user", 422)
        query = {"key": "k"}
        await agent.request(
            "PUT",
            "/v1/memories/by-key",
            params=query,
            json={"content": "Raised.", "trust": "operator"},
            status=HTTPStatus.UNPROCESSABLE_ENTITY,
        )


async def test_a_save_that_names_a_turn_is_trusted_at_most_as_the_turn(gateway: Gateway) -> None:
    async with agent_with(gateway, **OPERATOR) as agent:
        session = await agent.session()
        for role, given, trust in (
            ("user", None, "user"),
            ("assistant", None, "outside"),
            ("summary", None, "outside"),
            ("system", None, "operator"),
            ("system", "agent", "agent"),
        ):
            seq, origin = await append(agent, session, role, **({"trust": given} if given else {}))
            assert origin == {"channel": "turn", "trust": trust}
            source = {"session_id": session, "seq": seq}
            assert (await save(agent, f"{TEXT} {seq}", source=source))["trust"] == trust
            by_key = {"content": TEXT, "source": source}
            path = f"/v1/memories/by-key?key={seq}"
            saved = await agent.request("PUT", path, json=by_key, status=HTTPStatus.CREATED)
            assert saved["origin"] == {"channel": "api", "trust": trust}
        kept_elsewhere = {"session_id": "elsewhere", "seq": 3, "role": "assistant"}
        assert (await save(agent, "From elsewhere.", source=kept_elsewhere))["trust"] == "outside"
        body = {"content": "Raised.", "source": {"session_id": session, "seq": 1}, "trust": "agent"}
        await agent.request("POST", "/v1/memories", json=body, status=HTTPStatus.UNPROCESSABLE_ENTITY)


async def test_a_turn_is_trusted_as_its_role(gateway: Gateway) -> None:
    async with agent_with(gateway, user_id="ada") as agent:
        session = await agent.session()
        path = f"/v1/sessions/{session}/turns"
        assert (await append(agent, session, "user"))[1]["trust"] == "user"
        assert (await append(agent, session, "user", trust="outside"))[1]["trust"] == "outside"
        raised = {"role": "assistant", "content": TEXT, "trust": "user"}
        await agent.request("POST", path, json=raised, status=HTTPStatus.UNPROCESSABLE_ENTITY)
        batch = {"turns": [raised, {"role": "user", "content": "Hi"}]}
        response = await agent.request("POST", f"{path}/batch", json=batch, status=HTTPStatus.CREATED)
        assert [item.get("status") for item in response["results"]] == [422, None]
        await agent.context(session, "Where do I go?")
        window = (await agent.request("GET", path))["results"]
        assert [turn["origin"]["trust"] for turn in window] == ["user", "outside", "user", "user"]
        hits = (await agent.request("POST", "/v1/turns/search", json={"query": "train"}))["results"]
        assert {hit["origin"]["trust"] for hit in hits} == {"user", "outside"}


async def test_what_a_more_trusted_caller_says_again_is_trusted_more(gateway: Gateway) -> None:
    async with (
        agent_with(gateway) as agent,
        agent_with(gateway, **OPERATOR) as operator,
    ):
        assert (await save(agent, trust="user"))["trust"] == "user"
        assert (await save(operator))["trust"] == "operator"
        assert (await save(agent, trust="outside"))["trust"] == "operator"
        twice = {"memories": [{"content": "Twice.", "trust": "outside"}, {"content": "Twice."}]}
        response = await agent.request("POST", "/v1/memories/batch", json=twice, status=HTTPStatus.CREATED)
        assert [memory["origin"]["trust"] for memory in response["results"]] == ["agent", "agent"]


async def test_a_new_text_is_said_by_whoever_writes_it(gateway: Gateway) -> None:
    keys = ({**OPERATOR}, {"user_id": "ada"})
    async with agent_with(gateway, **keys[0]) as operator, agent_with(gateway, **keys[1]) as ada:
        memory = await operator.save(TEXT, enrich=False, user_id="ada")
        path = f"/v1/memories/{memory['id']}"
        labelled = await ada.request("PATCH", path, json={"importance": 0.9})
        assert labelled["origin"]["trust"] == "operator"
        lowered = await ada.request("PATCH", path, json={"trust": "agent"})
        assert (lowered["origin"]["trust"], lowered["version"]) == ("agent", labelled["version"] + 1)
        assert (await ada.request("PATCH", path, json={"trust": "agent"}))["version"] == lowered["version"]
        raised = {"trust": "operator"}
        await operator.request("PATCH", path, json=raised, status=HTTPStatus.UNPROCESSABLE_ENTITY)
        written = await ada.request("PATCH", path, json={"content": "Ada is the operator."})
        assert written["origin"] == {"channel": "api", "trust": "user"}
        reverted = await operator.request("POST", f"{path}/revert", json={"version": written["version"] - 1})
        assert reverted["origin"]["trust"] == "agent"
        repeated = await operator.request("POST", f"{path}/revert", json={"version": written["version"]})
        assert repeated["origin"]["trust"] == "user"


async def test_an_edited_turn_is_no_more_trusted_than_its_editor(gateway: Gateway) -> None:
    async with (
        agent_with(gateway, **OPERATOR) as operator,
        agent_with(gateway) as agent,
    ):
        session = await operator.session()
        seq, origin = await append(operator, session, "system")
        assert origin["trust"] == "operator"
        path = f"/v1/sessions/{session}/turns/{seq}"
        assert (await agent.request("PATCH", path, json={"metadata": {"a": "b"}}))["origin"] == origin
        edited = await agent.request("PATCH", path, json={"content": "Obey."})
        assert edited["origin"]["trust"] == "agent"
        assert (await operator.request("PATCH", path, json={"content": "No."}))["origin"]["trust"] == "agent"


async def test_a_tool_call_comes_by_a_tool(gateway: Gateway) -> None:
    async with agent_with(gateway) as agent:
        arguments = {"arguments": {"content": TEXT}}
        headers = {"loci-user": "ada"}
        await agent.request("POST", "/v1/tools/memory_add", json=arguments)
        await agent.request("POST", "/v1/tools/memory_add", json=arguments, headers=headers)
        listed = (await agent.request("GET", "/v1/memories", params={"user_id": "ada"}))["results"]
        origins = {memory["user_id"]: memory["origin"] for memory in listed}
        assert origins == {
            None: {"channel": "tool", "trust": "agent"},
            "ada": {"channel": "tool", "trust": "user"},
        }


async def test_an_import_raises_nothing(gateway: Gateway) -> None:
    async with (
        agent_with(gateway, **OPERATOR) as operator,
        agent_with(gateway) as agent,
    ):
        await operator.save("Said by an operator.", enrich=False)
        await operator.save("Said outside.", enrich=False, trust="outside")
        lines = (await operator.client.get("/v1/memories/export")).content
        assert b'"origin":{"channel":"api","trust":"operator"}' in lines
        params = {"agent_id": "copy"}
        await agent.request("POST", "/v1/memories/import", content=lines, params=params)
        listed = (await agent.request("GET", "/v1/memories", params=params))["results"]
        assert {memory["content"]: memory["origin"] for memory in listed} == {
            "Said by an operator.": {"channel": "api", "trust": "agent"},
            "Said outside.": {"channel": "api", "trust": "outside"},
        }
        repeated = await agent.request("POST", "/v1/memories/import", content=lines, params=params)
        assert repeated["skipped"] == 2


async def test_a_snippet_says_where_it_comes_from(gateway: Gateway) -> None:
    async with agent_with(gateway) as agent:
        path = f"/v1/sessions/{await agent.session()}/scratchpad"
        for trust, expected in (("outside", "outside"), (None, "agent"), ("user", "agent")):
            body = {"content": TEXT} | ({"trust": trust} if trust else {})
            written = await agent.request("POST", path, json=body, status=HTTPStatus.CREATED)
            assert written["origin"] == {"channel": "api", "trust": expected}
        await agent.request(
            "POST",
            path,
            json={"content": "x", "trust": "operator"},
            status=HTTPStatus.UNPROCESSABLE_ENTITY,
        )
        [read] = (await agent.request("GET", path))["results"]
        assert read["origin"]["trust"] == "agent"
