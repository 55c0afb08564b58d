"""What a body may cost a gateway: nothing before its key is known, then so many values and so many bytes."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any
from unittest.mock import AsyncMock

import httpx
import pytest
from starlette.types import Message

from services.gateway.limits import MAX_JSON_VALUES
from shared.foundation import config
from shared.platform.auth import api_keys
from tests.conftest import Gateway, running_gateway

MIB = 1024 * 1024
BATCH = "/v1/memories/batch"
JSON = {"content-type": "application/json"}
MCP = {"accept": "application/json, text/event-stream", "host": "127.0.0.1", **JSON}


async def _routes_with_body(gateway: Gateway) -> list[tuple[str, str]]:
    paths: dict[str, Any] = (await gateway.client.get("/openapi.json")).json()["paths"]
    return [
        ("POST", "/mcp"),
        *(
            (method.upper(), re.sub(r"\{[^}]*\}", "7", path))
            for path, operations in paths.items()
            for method, operation in operations.items()
            if "requestBody" in operation
        ),
    ]


async def _status_without_body(gateway: Gateway, method: str, path: str, headers: dict[str, str]) -> int:
    """Return the status of a request whose body never arrives."""
    statuses = []

    async def receive() -> Message:
        raise AssertionError(f"{method} {path} reads the body")

    async def send(message: Message) -> None:
        statuses.append(message.get("status", 0))

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    transport = gateway.client._transport
    assert isinstance(transport, httpx.ASGITransport)
    await transport.app(scope, receive, send)
    return int(statuses[0])


async def test_no_route_reads_a_body_before_it_knows_the_key(gateway: Gateway) -> None:
    routes = await _routes_with_body(gateway)
    assert len(routes) > 50
    body_headers = {"content-length": "1000000", **JSON}
    for headers in (body_headers, {"authorization": "Bearer loci_abcdefabcdef_x", **body_headers}):
        for method, path in routes:
            status = await _status_without_body(gateway, method, path, headers)
            assert status == HTTPStatus.UNAUTHORIZED, f"{method} {path}"


async def test_no_body_is_read_of_a_key_without_the_right_to_send_it(gateway: Gateway) -> None:
    client = await gateway.new_client(rights=frozenset({"read"}))
    headers = {"authorization": client.headers["authorization"], "content-length": "1000000", **JSON}
    for method, path in (("POST", "/v1/memories/batch"), ("POST", "/v1/import"), ("PUT", "/v1/pinned/7")):
        status = await _status_without_body(gateway, method, path, headers)
        assert status == HTTPStatus.FORBIDDEN, f"{method} {path}"


async def test_a_request_looks_its_key_up_once(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    look_ups = AsyncMock(side_effect=api_keys.authenticate)
    monkeypatch.setattr(api_keys, "authenticate", look_ups)
    saved = await gateway.client.post("/v1/memories", json={"content": "The gate closes at nine."})
    listed = await gateway.client.get("/v1/memories")
    assert (saved.status_code, listed.status_code) == (201, 200)
    assert look_ups.await_count == 2


async def _chunks(content: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


@pytest.mark.parametrize("value", ["[]", "{}", "1", '""', '{"a":1}', r'"\\"', r'["\""]'])
async def test_a_body_of_too_many_values_is_a_413_that_names_the_limit(gateway: Gateway, value: str) -> None:
    content = f'{{"memories":[{",".join([value] * MAX_JSON_VALUES)}]}}'.encode()
    response = await gateway.client.post(BATCH, content=_chunks(content, 99_991), headers=JSON)
    assert response.status_code == 413
    assert str(MAX_JSON_VALUES) in response.json()["detail"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
async def test_another_encoding_hides_no_values(gateway: Gateway, encoding: str) -> None:
    """A byte of the letter is a quotation mark."""
    content = f'{{"\u0122":1,"memories":[{"[]," * MAX_JSON_VALUES}[]]}}'.encode(encoding)
    response = await gateway.client.post(BATCH, content=_chunks(content, 100_000), headers=JSON)
    assert response.status_code == 413


async def test_what_stands_in_texts_is_not_counted(gateway: Gateway) -> None:
    contents = [f'{number}: "a\\b", ' + "[1, 2], {3}, " * 1000 for number in range(200)]
    body = {"memories": [{"content": content, "enrich": False} for content in contents]}
    assert sum(content.count(",") + content.count("[") for content in contents) > MAX_JSON_VALUES
    response = await gateway.client.post(BATCH, json=body)
    assert response.status_code == 201, response.text


async def test_values_of_a_request_of_mcp_are_counted(gateway: Gateway) -> None:
    content = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[' + b"[]," * 300_000 + b"[]]}"
    response = await gateway.client.post("/mcp", content=content, headers=MCP)
    assert response.status_code == 413
    assert str(MAX_JSON_VALUES) in response.json()["detail"]


async def test_a_file_and_lines_may_have_any_number_of_commas(gateway: Gateway) -> None:
    commas = b"," * (MAX_JSON_VALUES + 1)
    put = await gateway.client.put(
        "/v1/agents/a/files/f", content=commas, headers={"content-type": "text/csv"}
    )
    lines = b"\n".join(b'{"id":"%012x","content":"x","tags":[]}' % number for number in range(3))
    imported = await gateway.client.post("/v1/memories/import", content=lines + b"\n" * 5 + commas)
    assert put.status_code in (200, 201), put.text
    assert imported.status_code == 200, imported.text


class Held:
    """Requests whose bodies have arrived but for their ends."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._end = asyncio.Event()
        self._requests: list[asyncio.Task[httpx.Response]] = []

    async def add(self, path: str, size: int) -> None:
        has_arrived = asyncio.Event()

        async def content() -> AsyncIterator[bytes]:
            yield (b" " * 4095 + b"\n") * (size // 4096)
            has_arrived.set()
            await self._end.wait()

        request = self._client.post(path, content=content(), headers=JSON)
        self._requests.append(asyncio.create_task(request))
        await asyncio.wait_for(has_arrived.wait(), 20)

    async def end(self) -> list[int]:
        self._end.set()
        return [(await request).status_code for request in self._requests]


@asynccontextmanager
async def _held(gateway: Gateway) -> AsyncIterator[Held]:
    held = Held(gateway.client)
    try:
        yield held
    finally:
        await held.end()


async def test_bodies_take_so_much_room_and_bulk_ones_leave_a_quarter_to_the_others(
    make_settings: Callable[..., config.Settings], tenant: str
) -> None:
    settings = make_settings(gateway_body_mb=64)
    big = b"[" + b" " * (MIB - 2)

    async def save(path: str = "/v1/memories", content: bytes = b'{"content":"kept"}') -> httpx.Response:
        return await gateway.client.post(path, content=content, headers=JSON)

    async with running_gateway(settings, tenant) as gateway, _held(gateway) as held:
        await held.add(BATCH, 24 * MIB)
        await held.add("/v1/batch", 24 * MIB)
        refused = await save(BATCH, big)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert str(64 * MIB) in refused.json()["detail"]
        await held.add("/v1/import", 30 * MIB)  # is written to a file
        assert (await save()).status_code == 201
        for _ in range(16):
            await held.add("/v1/memories", MIB)
        assert (await save()).status_code == 503
        assert (await gateway.client.get("/v1/memories")).status_code == 200, "it has no body"
        assert set(await held.end()) == {200, 422}
        assert (await save()).status_code == 201
        bodies = [save(BATCH, b" " * (23 * MIB)) for _ in range(2)]
        assert [(await body).status_code for body in bodies] == [422, 422]
