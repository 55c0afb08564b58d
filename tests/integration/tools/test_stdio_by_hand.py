"""`loci mcp` by hand: lines that the official client would never write."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from shared.foundation import config
from shared.platform.auth import api_keys
from tests.conftest import Gateway, running_gateway
from tests.integration.tools.conftest import listening

_SECONDS = 60
_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "hand", "version": "1"}}
ADD = {"name": "memory_add", "arguments": {"content": "The gate is iron.", "importance": 0.125}}


class Server:
    """A running `loci mcp`, with its standard input and output."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process, self._writer, self._reader = process, process.stdin, process.stdout

    async def write(self, line: str | bytes) -> None:
        """Write a line."""
        self._writer.write((line.encode() if isinstance(line, str) else line) + b"\n")
        await self._writer.drain()

    async def read(self, message_id: int | None) -> dict[str, Any]:
        """Return the answer to a message; what is no answer to it is passed over."""
        while True:
            line = await asyncio.wait_for(self._reader.readline(), _SECONDS)
            assert line, "the server has ended"
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == message_id:
                return answer

    async def call(self, message_id: int, params: dict[str, Any], **in_place_of: str) -> dict[str, Any]:
        """Call a tool, with some of the text of the message replaced, and return the answer."""
        text = message("tools/call", message_id, params)
        for old, new in in_place_of.items():
            text = text.replace({"number": "0.125", "word": "gate"}[old], new)
        await self.write(text)
        return await self.read(message_id)


def message(method: str, message_id: int | None, params: dict[str, Any]) -> str:
    """Return a message as a line; one without an id is a notification."""
    content = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(content if message_id is None else content | {"id": message_id})


@asynccontextmanager
async def running(gateway: Gateway, url: str, data_dir: Path) -> AsyncIterator[Server]:
    """Run `loci mcp` after its handshake."""
    key = await api_keys.issue(gateway.resources.postgres, gateway.tenant)
    environment = {"PATH": os.environ["PATH"], "LOCI_URL": url, "LOCI_API_KEY": key}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "services.cli", "mcp"),
        env=environment | {"LOCI_DATA_DIR": str(data_dir)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    server = Server(process)
    try:
        await server.write(message("initialize", 1, _HELLO))
        await server.read(1)
        await server.write(message("notifications/initialized", None, {}))
        yield server
    finally:
        if process.stdin is not None:
            process.stdin.close()
        _, complaints = await asyncio.wait_for(process.communicate(), _SECONDS)
    assert process.returncode == 0
    assert b"Traceback" not in complaints, complaints.decode()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server(
    make_settings: Callable[..., config.Settings], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Server]:
    """A running `loci mcp` for all of these tests, which must end without a complaint."""
    async with (
        running_gateway(make_settings(), f"t-{uuid4().hex[:12]}") as gateway,
        listening(gateway) as url,
        running(gateway, url, tmp_path_factory.mktemp("mcp")) as server,
    ):
        yield server


def text_of(answer: dict[str, Any]) -> str:
    """Return what a model reads of an answer about an error."""
    assert answer["result"]["isError"] is True, answer
    return str(answer["result"]["content"][0]["text"])


async def test_arguments_that_can_not_be_stored_are_answered_as_over_http(server: Server) -> None:
    for number in ("NaN", "-Infinity", "1e999"):
        answer = await server.call(2, ADD, number=number)
        assert text_of(answer).startswith("importance: Input should be a finite number")
    for word in ("\\u0000", "\\ud800"):
        answer = await server.call(3, ADD, word=word)
        assert text_of(answer).startswith("arguments: must not contain NUL or lone surrogates")
    saved = await server.call(4, ADD)
    assert "Saved as [" in saved["result"]["content"][0]["text"]


async def test_lines_that_are_no_messages_end_nothing(server: Server) -> None:
    for line in (
        b"",
        b"no json",
        b"[]",
        b"{}",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"jsonrpc":"1.0","id":9}',
    ):
        await server.write(line)
    await server.write("[" + message("tools/list", 5, {}) + "]")
    await server.write(message("notifications/none", None, {}))
    await server.write(message("notifications/cancelled", None, {"requestId": 77}))
    for params in ({}, {"name": 1}, {"name": "memory_add", "arguments": []}, {"name": "x" * 100_000}):
        answer = await server.call(6, params)
        assert "error" in answer, answer
        assert len(str(answer["error"]["message"])) < 2500
    assert "result" in await server.call(7, ADD)


async def test_a_call_that_is_cancelled_ends_nothing(server: Server) -> None:
    await server.call(8, ADD)
    for number in range(10, 30):
        await server.write(message("tools/call", number, ADD))
        await server.write(message("notifications/cancelled", None, {"requestId": number}))
    assert "result" in await server.call(31, ADD)
