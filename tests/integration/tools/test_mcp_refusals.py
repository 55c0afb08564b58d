"""What MCP refuses: tools that are not listed, sets that it does not have, hosts, and requests of no use."""

import asyncio
from typing import Any

import httpx
import orjson
import pytest
from mcp.shared.exceptions import MCPError

from shared.platform.auth import api_keys
from tests.agent import wait_until
from tests.conftest import Gateway
from tests.integration.tools.conftest import Connect
from tests.integration.tools.listed_tools import ACCEPT, LIST, text_of

MODERN = {"mcp-protocol-version": "2026-07-28"}


async def post(
    gateway: Gateway, content: bytes = LIST, headers: list[tuple[str, str]] | None = None, query: str = ""
) -> httpx.Response:
    """Send a request by hand. Headers given here stand in place of those of their name."""
    usual = {"host": "127.0.0.1:8700", "content-type": "application/json", **ACCEPT}
    usual["authorization"] = gateway.client.headers["authorization"]
    given = headers or []
    names = {name for name, _ in given}
    both = [pair for pair in usual.items() if pair[0] not in names] + given
    request = httpx.Request("POST", f"http://127.0.0.1:8700/mcp{query}", headers=both, content=content)
    return await gateway.client.send(request)


def call_of(name: str, **arguments: Any) -> bytes:
    """Return a call of a tool, as of before 2026."""
    params = {"name": name, "arguments": arguments}
    return orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


async def test_a_tool_that_is_not_listed_is_unknown_and_does_nothing(
    connect: Connect, gateway: Gateway
) -> None:
    saved = await gateway.client.post("/v1/memories", json={"content": "Ada likes trains."})
    memory_id = saved.json()["id"]
    session = (await gateway.client.post("/v1/sessions", json={})).json()["id"]
    cases = [
        ("", "delete_memory", {"id": memory_id}),
        ("", "working_get", {"key": "patrol/mail/x"}),
        ("?set=documents", "memory_forget", {"id": memory_id}),
        ("?set=all", "save_memory", {"content": "slipped in"}),
        ("?set=all", "preference_set", {"key": "k", "flow": "f", "slot": "s", "value": "v"}),
    ]
    for query, name, arguments in cases:
        async with connect(query=query, **{"loci-session": session}) as client:
            with pytest.raises(MCPError, match=f"no tool '{name}' in the list of this request"):
                await client.call_tool(name, arguments)
    rows = (await gateway.client.get("/v1/memories")).json()["results"]
    assert [(row["id"], row["state"]) for row in rows] == [(memory_id, "final")]
    async with connect() as client:
        with pytest.raises(MCPError, match="no tool 'context_get'"):
            await client.call_tool("context_get", {"message": "hello"})


async def test_a_set_that_mcp_does_not_have_is_refused_by_its_names(gateway: Gateway) -> None:
    for name in ("rockbot", "none", ""):
        response = await post(gateway, query=f"?set={name}")
        assert response.status_code == 422
        assert response.json()["errors"][0]["field"] == "set"
        assert "all, default, documents" in response.json()["detail"]
    in_session = {"loci-session": "s"}
    listed = await gateway.client.get("/v1/tools", params={"set": "rockbot"}, headers=in_session)
    assert len(listed.json()["results"]) == 15, "RockBot agents get them as before"
    as_mcp = await gateway.client.get("/v1/tools", params={"set": "rockbot", "style": "mcp"})
    assert as_mcp.status_code == 422


@pytest.mark.parametrize(
    "headers",
    [
        [("host", "localhost/@evil.com")],
        [("host", "evil.com@localhost")],
        [("host", "")],
        [("host", "127.0.0.1:8700"), ("host", "evil.com")],
        [("origin", "http://localhost/@evil.com")],
        [("origin", "http://localhost@evil.com")],
        [("origin", "")],
        [("origin", "http://localhost"), ("origin", "http://evil.com")],
    ],
)
async def test_a_host_that_only_looks_like_one_of_the_list_is_refused(
    gateway: Gateway, headers: list[tuple[str, str]]
) -> None:
    response = await post(gateway, headers=headers)
    assert response.status_code == 403, response.text
    assert "LOCI_MCP_HOSTS" in response.json()["detail"]


async def test_what_can_not_be_stored_is_an_answer_as_over_http(connect: Connect) -> None:
    async with connect() as client:
        for arguments, rule in (
            ({"content": "a\x00b"}, "arguments: must not contain NUL or lone surrogates"),
            ({"content": "\u200b\u2060"}, "content: must not be blank"),
        ):
            answer = await client.call_tool("memory_add", arguments)
            assert answer.is_error
            assert text_of(answer).startswith(rule), text_of(answer)


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"1e999"])
async def test_a_number_that_is_none_is_an_answer_as_over_http(gateway: Gateway, number: bytes) -> None:
    content = call_of("memory_add", content="x", importance=0.125).replace(b"0.125", number)
    result = (await post(gateway, content)).json()["result"]
    assert result["isError"] is True
    assert result["content"][0]["text"].startswith("importance: Input should be a finite number")


async def test_an_idempotency_key_counts_once_for_each_tool_whatever_the_id_of_the_message(
    gateway: Gateway,
) -> None:
    headers = [("idempotency-key", "k"), ("loci-user", "ada")]
    first = call_of("memory_add", content="kept")
    repeated = orjson.dumps(orjson.loads(first) | {"id": 2})
    answers = [(await post(gateway, content, headers)).json() for content in (first, repeated)]
    texts = [answer["result"]["content"][0]["text"] for answer in answers]
    assert texts[0] == texts[1]
    assert texts[0].startswith("Saved as [")
    other = (await post(gateway, call_of("memory_add", content="another"), headers)).json()
    assert "Idempotency-Key" in other["error"]["message"]
    searched = (await post(gateway, call_of("memory_search", query="kept"), headers)).json()
    assert "kept" in searched["result"]["content"][0]["text"]
    for_bob = [("idempotency-key", "k"), ("loci-user", "bob")]
    of_bob = (await post(gateway, first, for_bob)).json()
    assert of_bob["result"]["content"][0]["text"] != texts[0]
    [row] = (await gateway.client.get("/v1/memories?user_id=ada")).json()["results"]
    assert row["reinforcement_count"] == 1
    session = (await gateway.client.post("/v1/sessions", json={"user_id": "ada"})).json()["id"]
    in_session = (await post(gateway, first, [*headers, ("loci-session", session)])).json()
    assert "Known already" in in_session["result"]["content"][0]["text"], "another request"
    noted = call_of("scratchpad_write", content="kept")
    other_tool = await post(gateway, noted, [*headers, ("loci-session", session)], "?set=scratchpad")
    assert other_tool.json()["result"]["content"][0]["text"] == "Noted."
    too_long = await post(gateway, first, [("idempotency-key", "k" * 300)])
    assert too_long.status_code == 422


async def test_calls_at_once_each_get_their_own_answer(connect: Connect, gateway: Gateway) -> None:
    words = [f"word{number}" for number in range(12)]
    ada = await api_keys.issue(gateway.resources.postgres, gateway.tenant, user_id="ada")
    async with connect(ada) as of_ada, connect(**{"loci-user": "bob"}) as of_bob:
        calls = [
            client.call_tool("memory_add", {"content": f"{word} of {name}"})
            for word in words
            for name, client in (("ada", of_ada), ("bob", of_bob))
        ]
        await asyncio.gather(*calls)
        for name, client, other in (("ada", of_ada, "bob"), ("bob", of_bob, "ada")):
            found = text_of(await client.call_tool("memory_search", {"query": "word3", "limit": 20}))
            assert f"word3 of {name}" in found
            assert f"of {other}" not in found


async def test_calls_that_a_client_gives_up_leave_no_task_and_end_nothing(
    connect: Connect, gateway: Gateway
) -> None:
    async with connect() as client:
        await client.call_tool("memory_add", {"content": "before"})
        before = len(asyncio.all_tasks())
        for number in range(10):
            call = asyncio.create_task(client.call_tool("memory_add", {"content": f"number {number}"}))
            for _ in range(number):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        assert not (await client.call_tool("memory_add", {"content": "after"})).is_error

        async def is_as_before() -> bool:
            return len(asyncio.all_tasks()) <= before

        await wait_until(is_as_before)
    rows = (await gateway.client.get("/v1/memories?limit=100")).json()["results"]
    assert {"before", "after"} <= {row["content"] for row in rows}
    assert len(rows) == len({row["content"] for row in rows})
