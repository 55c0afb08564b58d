"""`loci mcp`: the tools over standard input and output, by the official client and a gateway that runs."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from shared.platform.auth import api_keys
from tests.conftest import Gateway
from tests.integration.tools.test_mcp import WITHOUT_SESSION, names, text_of


@pytest.fixture
async def key(gateway: Gateway) -> str:
    """A key of the tenant that is bound to nothing."""
    return await api_keys.issue(gateway.resources.postgres, gateway.tenant)


@asynccontextmanager
async def connected(url: str, key: str, era: str, data_dir: Path, *options: str) -> AsyncIterator[Client]:
    """Start `loci mcp` as a host does, and connect to it."""
    environment = {
        "PATH": os.environ["PATH"],
        "LOCI_URL": url,
        "LOCI_API_KEY": key,
        "LOCI_DATA_DIR": str(data_dir),
    }
    command = ["-m", "services.cli", "mcp", *options]
    parameters = StdioServerParameters(command=sys.executable, args=command, env=environment)
    async with Client(stdio_client(parameters), mode=era) as client:
        yield client


async def test_the_options_choose_agent_and_user(
    gateway: Gateway, url: str, key: str, era: str, tmp_path: Path
) -> None:
    async with connected(url, key, era, tmp_path, "--agent", "inn", "--user", "zoë") as client:
        assert await names(client) == WITHOUT_SESSION
        assert not (await client.call_tool("memory_add", {"content": "Zoë likes ships."})).is_error
        assert "Zoë likes ships." in text_of(await client.call_tool("memory_search", {"query": "ships"}))
        missing = await client.call_tool("memory_forget", {"id": "none"})
        assert missing.is_error
        assert "memory_search" in text_of(missing)
        assert "404" in text_of(await client.call_tool("../memories", {}))
    rows = (await gateway.client.get("/v1/memories", params={"agent_id": "inn", "user_id": "zoë"})).json()
    assert [row["content"] for row in rows["results"]] == ["Zoë likes ships."]


async def test_a_session_adds_its_tools_and_another_users_session_is_unknown(
    gateway: Gateway, url: str, key: str, tmp_path: Path
) -> None:
    session = (await gateway.client.post("/v1/sessions", json={"user_id": "ada"})).json()["id"]
    async with connected(url, key, "legacy", tmp_path, "--session", session) as client:
        assert "context_get" in await names(client)
        assert not (await client.call_tool("working_set", {"key": "plan", "value": "x"})).is_error
    async with connected(url, key, "legacy", tmp_path, "--session", session, "--user", "bob") as client:
        refused = await client.call_tool("working_set", {"key": "plan", "value": "slipped in"})
        assert refused.is_error
        assert "session not found" in text_of(refused)


async def test_a_gateway_that_is_away_or_refuses_the_key_is_said_in_words(
    unused_url: str, url: str, tmp_path: Path
) -> None:
    async with connected(unused_url, "loci_0_0", "legacy", tmp_path) as client:
        assert "loci up" in text_of(await client.call_tool("memory_search", {"query": "x"}))
        with pytest.raises(MCPError, match="does not answer"):
            await client.list_tools()
    async with connected(url, "loci_0_0", "legacy", tmp_path) as client:
        assert "401" in text_of(await client.call_tool("memory_search", {"query": "x"}))
