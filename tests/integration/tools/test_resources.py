"""Skills as resources of MCP, by the official client, over HTTP and by what `loci mcp` runs.

One test starts `loci mcp` as a host does: what it forwards in a process it forwards in this one.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from services.commands.mcp import Choice
from services.gateway import mcp_resources
from shared.memory.skills import read
from shared.platform.auth import api_keys
from tests.conftest import Gateway
from tests.integration.tools.conftest import Connect
from tests.integration.tools.stdio import connected, connected_within

Open = Callable[..., AbstractAsyncContextManager[Client]]
ADA = {"agent": "inn", "user": "ada"}


WAYS = ["http", "within"]


@pytest.fixture(params=WAYS)
async def open_client(
    request: pytest.FixtureRequest, gateway: Gateway, connect: Connect, url: str, era: str, tmp_path: Path
) -> Open:
    """Return a function that connects a client for an agent, a user and a session, with a key."""
    unbound = await api_keys.issue(gateway.resources.postgres, gateway.tenant)

    def opened(key: str = unbound, **chosen: str) -> AbstractAsyncContextManager[Client]:
        if request.param == "http":
            return connect(key, **{f"loci-{name}": value for name, value in chosen.items()})
        if request.param == "within":
            return connected_within(url, key, era, Choice(**chosen))
        options = [word for name, value in chosen.items() for word in (f"--{name}", value)]
        return connected(url, key, era, tmp_path, *options)

    return opened


async def put(gateway: Gateway, name: str, content: str = "Knead.", **fields: Any) -> None:
    """Store a skill."""
    response = await gateway.client.put(f"/v1/skills/{name}", json={"content": content, **fields})
    assert response.is_success, response.text


def text_of(result: mcp_types.ReadResourceResult) -> str:
    """Return the text of a resource."""
    (content,) = result.contents
    assert isinstance(content, mcp_types.TextResourceContents)
    assert content.mime_type == "text/markdown"
    return content.text


@pytest.mark.parametrize("open_client", [*WAYS, "process"], indirect=True)
async def test_skills_are_listed_and_read_by_those_whose_they_are(
    open_client: Open, gateway: Gateway
) -> None:
    await put(gateway, "bread", "# Of ada\n", summary="Ada's.", agent_id="inn", user_id="ada")
    await put(gateway, "bread", "# Of all\n", summary="Of all.", agent_id="inn")
    await put(gateway, "cake", "# Cake\n", agent_id="inn", user_id="bob")
    await put(gateway, "tea", "# Tea\n", agent_id="mill")
    async with open_client(**ADA) as client:
        (listed,) = (await client.list_resources()).resources
        assert (listed.uri, listed.name, listed.description) == ("skill://bread", "bread", "Ada's.")
        assert listed.mime_type == "text/markdown"
        assert text_of(await client.read_resource("skill://bread")) == "# Of ada\n"
        for uri in ("skill://cake", "skill://tea", "skill://none"):
            with pytest.raises(MCPError, match="no skill") as raised:
                await client.read_resource(uri)
            assert raised.value.error.code == mcp_types.INVALID_PARAMS
    used = (await gateway.client.get("/v1/skills", params={"agent_id": "inn", "user_id": "ada"})).json()
    assert [row["last_used_at"] is None for row in used["results"]] == [False, True]


async def test_a_session_gives_its_agent_and_user_and_one_of_another_user_is_unknown(
    open_client: Open, gateway: Gateway
) -> None:
    await put(gateway, "bread", agent_id="inn", user_id="ada")
    body = {"agent_id": "inn", "user_id": "ada"}
    session = (await gateway.client.post("/v1/sessions", json=body)).json()["id"]
    async with open_client(session=session) as client:
        assert [row.name for row in (await client.list_resources()).resources] == ["bread"]
        assert text_of(await client.read_resource("skill://bread")) == "Knead."
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        used_in = (await tx.connection.exec_driver_sql("SELECT session_id FROM skill_use")).scalars().all()
    assert used_in == [session]
    for unknown in (session, "none"):
        async with open_client(session=unknown, user="bob") as client:
            with pytest.raises(MCPError, match="session not found"):
                await client.list_resources()
            with pytest.raises(MCPError, match="session not found"):
                await client.read_resource("skill://bread")


async def test_a_key_that_may_read_no_skill_is_listed_none(open_client: Open, gateway: Gateway) -> None:
    await put(gateway, "bread")
    for bound, refusal in (({"namespace": "patrol/p"}, "may not read"), ({"rights": ["write"]}, "'read'")):
        key = await api_keys.issue(gateway.resources.postgres, gateway.tenant, **bound)
        async with open_client(key) as client:
            assert (await client.list_resources()).resources == []
            with pytest.raises(MCPError, match=refusal):
                await client.read_resource("skill://bread")


async def test_pages_hold_every_skill_once(
    open_client: Open, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_resources, "_PAGE", 2)
    expected = ["a", "a-b", "a1", "b", "z"]
    for name in expected:
        await put(gateway, name)
    names: list[str] = []
    async with open_client() as client:
        cursor = None
        while True:
            page = await client.list_resources(cursor=cursor)
            names += [row.name for row in page.resources]
            if (cursor := page.next_cursor) is None:
                break
        with pytest.raises(MCPError, match="cursor"):
            await client.list_resources(cursor="../up")
    assert sorted(names) == sorted(expected)


async def test_what_is_no_skill_is_refused_and_no_error_shows_its_text(
    open_client: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_client() as client:
        for uri in ("file:///etc/passwd", "skill://../up", "skill://a/b", "skill://%2e", "skill://", "x"):
            with pytest.raises(MCPError) as raised:
                await client.read_resource(uri)
            assert raised.value.error.code == mcp_types.INVALID_PARAMS, uri

        async def fail(*_: Any) -> None:
            raise RuntimeError("a secret")

        monkeypatch.setattr(read, "list_in_force", fail)
        with pytest.raises(MCPError, match="unexpected") as raised:
            await client.list_resources()
        assert "secret" not in str(raised.value.error)
