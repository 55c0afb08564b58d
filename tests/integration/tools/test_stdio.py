"""`loci mcp`: the tools over standard input and output, by the official client and a gateway that runs.

What needs no process is shown without one.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from typer.testing import CliRunner

from services.cli import app
from services.commands.mcp import Choice
from shared.platform.auth import api_keys
from tests.conftest import Gateway
from tests.integration.tools.listed_tools import WITHOUT_SESSION, names, text_of
from tests.integration.tools.stdio import connected, connected_within


class _Page(BaseHTTPRequestHandler):
    """Answers every request with a page."""

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<h1>Welcome</h1>")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def page_url() -> Iterator[str]:
    """The address of a server of web pages."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
async def key(gateway: Gateway) -> str:
    """A key of the tenant that is bound to nothing."""
    return await api_keys.issue(gateway.resources.postgres, gateway.tenant)


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
        for name in ("../memories", "", ".", "..", "delete_memory", "none"):
            with pytest.raises(MCPError, match="in the list of this server"):
                await client.call_tool(name, {})
    rows = (await gateway.client.get("/v1/memories", params={"agent_id": "inn", "user_id": "zoë"})).json()
    assert [row["content"] for row in rows["results"]] == ["Zoë likes ships."]


async def test_a_session_adds_its_tools_and_another_users_session_is_unknown(
    gateway: Gateway, url: str, key: str, tmp_path: Path
) -> None:
    session = (await gateway.client.post("/v1/sessions", json={"user_id": "ada"})).json()["id"]
    async with connected(url, key, "legacy", tmp_path, "--set", "all", "--session", session) as client:
        assert "working_set" in await names(client)
        assert not (await client.call_tool("working_set", {"key": "plan", "value": "x"})).is_error
    async with connected(
        url, key, "legacy", tmp_path, "--set", "all", "--session", session, "--user", "bob"
    ) as client:
        refused = await client.call_tool("working_set", {"key": "plan", "value": "slipped in"})
        assert refused.is_error
        assert "session not found" in text_of(refused)


async def test_a_gateway_that_is_away_or_refuses_the_key_is_said_in_words(unused_url: str, url: str) -> None:
    async with connected_within(unused_url, "loci_0_0", "legacy", Choice()) as client:
        assert "loci up" in text_of(await client.call_tool("memory_search", {"query": "x"}))
        with pytest.raises(MCPError, match="does not answer"):
            await client.list_tools()
    async with connected_within(url, "loci_0_0", "legacy", Choice()) as client:
        assert "401" in text_of(await client.call_tool("memory_search", {"query": "x"}))


@pytest.mark.parametrize(
    ("options", "key", "message"),
    [
        (["--user", "ada\n"], "loci_0_0", "--user: must be printable"),
        (["--agent", ""], "loci_0_0", "--agent: must be printable"),
        (["--session", "a\nb"], "loci_0_0", "--session: must be printable"),
        (["--url", "nowhere"], "loci_0_0", "must be an address"),
        (["--url", "http://a\nb"], "loci_0_0", "must be an address"),
        ([], "loci_0\n_0", "must be one word of printable ASCII"),
        ([], "loci_ß", "must be one word of printable ASCII"),
    ],
)
def test_an_option_or_a_key_that_can_not_be_sent_is_refused_at_the_start_by_its_name(
    options: list[str], key: str, message: str, tmp_path: Path
) -> None:
    environment = {"LOCI_API_KEY": key, "LOCI_DATA_DIR": str(tmp_path)}
    done = CliRunner().invoke(app, ["mcp", *options], env=environment)
    assert (done.exit_code, type(done.exception)) == (1, SystemExit)
    assert message in done.stderr
    assert key not in done.output


def test_a_process_that_refuses_to_start_says_why_in_one_line(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "LOCI_API_KEY": "loci_0\n_0", "LOCI_DATA_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "services.cli", "mcp"]
    done = subprocess.run(
        command, env=environment, input="", capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == "loci: the key (LOCI_API_KEY) must be one word of printable ASCII characters\n"


async def test_a_line_break_at_the_end_of_a_key_is_none_of_it(url: str, key: str) -> None:
    async with connected_within(url, f"{key}\n", "legacy", Choice()) as client:
        assert await names(client) == WITHOUT_SESSION


async def test_what_answers_at_the_address_and_is_no_gateway_is_said_in_words(page_url: str) -> None:
    async with connected_within(page_url, "loci_0_0", "legacy", Choice()) as client:
        assert "is no gateway of Loci" in text_of(await client.call_tool("memory_search", {"query": "x"}))
        with pytest.raises(MCPError, match="is no gateway of Loci"):
            await client.list_tools()
