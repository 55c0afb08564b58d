"""The tools over MCP, by the official client, in both eras of the protocol."""

import subprocess
import sys
from uuid import uuid4

import httpx
import pytest
from mcp.shared.exceptions import MCPError

from services.gateway.tools.instructions import INSTRUCTIONS
from shared.platform.auth import api_keys
from tests.conftest import Gateway
from tests.integration.tools.conftest import Connect
from tests.integration.tools.listed_tools import ACCEPT, LIST, WITHOUT_SESSION, names, text_of

IN_SESSION = [*WITHOUT_SESSION, "context_get"]


async def test_a_memory_is_added_and_found(connect: Connect) -> None:
    async with connect() as client:
        added = await client.call_tool("memory_add", {"content": "Ada likes trains."})
        assert not added.is_error
        found = await client.call_tool("memory_search", {"query": "trains"})
    assert "Ada likes trains." in text_of(found)


async def test_the_list_is_that_of_the_key_in_a_fixed_order(connect: Connect, gateway: Gateway) -> None:
    reader = await api_keys.issue(gateway.resources.postgres, gateway.tenant, rights=["read"])
    async with connect() as client:
        assert await names(client) == WITHOUT_SESSION
        assert await names(client) == WITHOUT_SESSION
    async with connect(**{"loci-session": "any"}) as client:
        assert await names(client) == IN_SESSION
    async with connect(reader) as client:
        assert await names(client) == ["memory_search", "conversation_search"]
    rest = ["working_get", "skill_load", "graph_facts"]
    async with connect(query="?set=all") as client:
        assert await names(client) == [*WITHOUT_SESSION, *rest]
    async with connect(query="?set=all", **{"loci-session": "any"}) as client:
        assert await names(client) == [*IN_SESSION, "working_get", "working_set", *rest[1:]]


async def test_hints_say_what_a_call_may_do(connect: Connect) -> None:
    async with connect() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    search, forget = tools["memory_search"].annotations, tools["memory_forget"].annotations
    assert search is not None
    assert forget is not None
    assert (search.read_only_hint, search.open_world_hint) == (True, False)
    assert (forget.read_only_hint, forget.destructive_hint, forget.idempotent_hint) == (False, True, True)


async def test_another_set_is_listed_by_the_address(connect: Connect) -> None:
    async with connect(query="?set=documents") as client:
        assert await names(client) == ["search_business_context"]


async def test_an_error_of_a_tool_is_a_result_and_an_unknown_tool_an_error(
    connect: Connect, gateway: Gateway
) -> None:
    reader = await api_keys.issue(gateway.resources.postgres, gateway.tenant, rights=["read"])
    async with connect() as client:
        missing = await client.call_tool("memory_forget", {"id": "none"})
        assert missing.is_error
        assert "memory_search" in text_of(missing)
        with pytest.raises(MCPError, match="no tool 'none' in the list of this request"):
            await client.call_tool("none", {})
    async with connect(reader) as client:
        with pytest.raises(MCPError, match="no tool 'memory_add' in the list of this request"):
            await client.call_tool("memory_add", {"content": "slipped in"})


async def test_headers_choose_within_the_rights_of_the_key(connect: Connect, gateway: Gateway) -> None:
    word = uuid4().hex
    async with connect(**{"loci-agent": "inn", "loci-user": "ada"}) as client:
        await client.call_tool("memory_add", {"content": f"of ada {word}"})
    rows = (await gateway.client.get("/v1/memories?agent_id=inn&user_id=ada")).json()["results"]
    assert [(row["agent_id"], row["user_id"]) for row in rows] == [("inn", "ada")]
    async with connect(**{"loci-agent": "inn", "loci-user": "bob"}) as client:
        assert word not in text_of(await client.call_tool("memory_search", {"query": word}))
        taken = await client.call_tool("memory_update", {"id": rows[0]["id"], "content": "taken over"})
        assert taken.is_error


async def test_a_foreign_session_answers_as_an_unknown_one(connect: Connect, gateway: Gateway) -> None:
    async with await gateway.new_client(f"t-{uuid4().hex[:8]}") as stranger:
        foreign = (await stranger.post("/v1/sessions", json={})).json()["id"]
    bob = (await gateway.client.post("/v1/sessions", json={"user_id": "bob"})).json()["id"]
    ada = await api_keys.issue(gateway.resources.postgres, gateway.tenant, user_id="ada")
    texts = []
    for session_id in (foreign, bob, "unknown"):
        async with connect(ada, "?set=all", **{"loci-session": session_id}) as client:
            for name, arguments in (
                ("context_get", {"message": "hello"}),
                ("conversation_search", {"query": "hello"}),
                ("working_set", {"key": "plan", "value": "slipped in"}),
                ("memory_add", {"content": "slipped in"}),
            ):
                result = await client.call_tool(name, arguments)
                assert result.is_error, name
                texts.append(text_of(result).replace(session_id, "…"))
    assert len(set(texts)) == 1


async def test_a_session_is_worked_in(connect: Connect, gateway: Gateway) -> None:
    session = (await gateway.client.post("/v1/sessions", json={"user_id": "ada"})).json()["id"]
    async with connect(query="?set=all", **{"loci-session": session}) as client:
        await client.call_tool("working_set", {"key": "plan", "value": "go to Kiel"})
        assert "go to Kiel" in text_of(await client.call_tool("working_get", {"key": "plan"}))
        context = await client.call_tool("context_get", {"message": "what now?"})
        assert f"session/{session}/plan" in text_of(context)


async def test_the_server_says_who_it_is_in_both_eras(connect: Connect, era: str) -> None:
    async with connect() as client:
        assert (client.protocol_version == "2026-07-28") == (era == "auto")
        assert client.instructions == INSTRUCTIONS
        assert client.server_info is not None
        assert client.server_info.name == "loci"


@pytest.mark.parametrize("query", ["", "?set=all"])
async def test_the_bytes_of_a_list_are_few(gateway: Gateway, query: str) -> None:
    response = await _post(gateway, {"loci-session": "s"}, query=query)
    assert len(response.json()["result"]["tools"]) == (10 if query else 6)
    assert len(response.content) / 4 <= (2500 if query else 1500)


async def test_without_a_valid_key_nothing_is_answered(gateway: Gateway) -> None:
    for authorization in ("", "Bearer x", "Bearer loci_000000000000_x"):
        response = await _post(gateway, {"authorization": authorization})
        assert response.status_code == 401
        assert response.headers["www-authenticate"] == "Bearer"


async def test_a_key_that_is_bound_elsewhere_than_the_headers_say_is_refused(gateway: Gateway) -> None:
    key = await api_keys.issue(gateway.resources.postgres, gateway.tenant, user_id="ada")
    response = await _post(gateway, {"authorization": f"Bearer {key}", "loci-user": "bob"})
    assert response.status_code == 403
    assert "bound to user_id 'ada'" in response.json()["detail"]
    assert (await _post(gateway, {"loci-user": ""})).status_code == 422


async def test_a_host_or_origin_that_is_not_on_the_list_is_refused_by_the_name_of_the_setting(
    gateway: Gateway,
) -> None:
    for headers in ({"host": "evil.example"}, {"origin": "http://evil.example"}, {"origin": "null"}):
        response = await _post(gateway, headers)
        assert response.status_code == 403, headers
        assert "LOCI_MCP_HOSTS" in response.json()["detail"]
    for headers in ({"host": "localhost:8700"}, {"origin": "http://127.0.0.1:3000"}, {"host": "[::1]:8700"}):
        assert (await _post(gateway, headers)).status_code == 200, headers


async def test_only_post_is_served_and_a_bad_request_is_no_failure(gateway: Gateway) -> None:
    for method in ("GET", "DELETE"):
        assert (await gateway.client.request(method, "/mcp")).status_code == 405
    for content in (b"", b"no json", b"[]", b"{}", b'{"jsonrpc":"2.0","id":1,"method":"none"}'):
        response = await _post(gateway, content=content)
        assert response.status_code < 500, (content, response.text)
    assert (await _post(gateway, content=b" " * 1_100_000)).status_code == 413
    assert (await _post(gateway, query="?set=none")).status_code == 422


def test_a_gateway_that_nobody_asks_by_mcp_does_not_import_its_sdk() -> None:
    code = "import sys, services.gateway.app as app; app.create_app(); sys.exit('mcp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def _post(
    gateway: Gateway,
    headers: dict[str, str] | None = None,
    *,
    query: str = "",
    content: bytes = LIST,
) -> httpx.Response:
    """Send a request by hand, without the client's care."""
    known = {"host": "127.0.0.1:8700", "content-type": "application/json", **ACCEPT}
    return await gateway.client.post(f"/mcp{query}", headers=known | (headers or {}), content=content)
