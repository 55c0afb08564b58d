"""Bodies that are too large, not JSON, or built to break a parser."""

import gzip
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.badinput import problem
from tests.badinput.conftest import SESSION, CheckedGateway

MIB = 1024 * 1024
MEMORIES = "/v1/memories"
JSON = {"content-type": "application/json"}


async def _chunks(size: int, chunk: bytes = b"x" * 65_536) -> AsyncIterator[bytes]:
    """Yield a body whose length no header states."""
    yield b'{"content": "'
    for _ in range(-(-size // len(chunk))):
        yield chunk
    yield b'"}'


async def test_a_mebibyte_of_content_is_a_413_that_names_the_limit(gateway: CheckedGateway) -> None:
    async with gateway.unchanged():
        response = await gateway.client.post(MEMORIES, json={"content": "x" * MIB})
    assert response.status_code == 413
    assert str(MIB) in problem.parse_problem(response)["detail"]


@pytest.mark.parametrize("content_length", [None, "10", "-1", "many"])
async def test_a_body_in_chunks_is_counted_whatever_its_headers_claim(
    gateway: CheckedGateway, content_length: str | None
) -> None:
    headers = JSON if content_length is None else JSON | {"content-length": content_length}
    async with gateway.unchanged():
        response = await gateway.client.post(MEMORIES, content=_chunks(MIB), headers=headers)
    assert response.status_code == 413
    assert str(MIB) in problem.parse_problem(response)["detail"]


@pytest.mark.parametrize(
    "path", [f"{MEMORIES}/batch", f"{MEMORIES}/import", f"/v1/sessions/{SESSION}/turns/batch"]
)
async def test_a_bulk_body_may_be_larger_and_has_its_own_limit(gateway: CheckedGateway, path: str) -> None:
    async with gateway.unchanged():
        lines = b"x" * 65_535 + b"\n"  # each line of an import has its own limit
        large_response = await gateway.client.post(path, content=_chunks(2 * MIB, lines), headers=JSON)
        too_large_response = await gateway.client.post(path, content=_chunks(32 * MIB, lines), headers=JSON)
    assert large_response.status_code != 413
    assert too_large_response.status_code == 413
    assert (
        str(32 * MIB) in problem.parse_problem(too_large_response)["detail"]
        or "32 MiB" in problem.parse_problem(too_large_response)["detail"]
    )


async def test_content_over_its_limit_is_refused_by_name_and_at_its_limit_is_stored(
    gateway: CheckedGateway,
) -> None:
    async with gateway.unchanged():
        memory = await gateway.client.post(MEMORIES, json={"content": "x" * 16_001})
        turn = {"role": "user", "content": "x" * 256_001}
        appended = await gateway.client.post(f"/v1/sessions/{SESSION}/turns", json=turn)
    assert problem.names_violation(memory, "content", "at most 16000 characters")
    assert problem.names_violation(appended, "content", "at most 256000 characters")
    stored = await gateway.client.post(MEMORIES, json={"content": "я" * 16_000})
    assert stored.status_code == 201, "characters are counted, not bytes"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"not json",
        b"[]",
        b'"text"',
        b"1",
        b"null",
        b'{"content": ',
        b"{'content': 'x'}",
        b"\xff\xfe",
        b"\x00",
    ],
)
async def test_what_is_not_a_json_object_is_a_422(gateway: CheckedGateway, raw: bytes) -> None:
    async with gateway.unchanged():
        response = await gateway.client.post(MEMORIES, content=raw, headers=JSON)
    assert response.status_code == 422, response.text
    assert problem.names_violation(response, "body")


@pytest.mark.parametrize("depth", [100, 400, 900, 5_000, 100_000])
@pytest.mark.parametrize("name", ["content", "usage", "memories"])
async def test_a_deeply_nested_body_is_a_422(gateway: CheckedGateway, name: str, depth: int) -> None:
    paths = {"usage": f"/v1/sessions/{SESSION}/turns", "memories": f"{MEMORIES}/batch"}
    raw = f'{{"{name}": {"[" * depth}{"]" * depth}}}'.encode()
    async with gateway.unchanged():
        response = await gateway.client.post(paths.get(name, MEMORIES), content=raw, headers=JSON)
    assert response.status_code == 422, response.text
    problem.parse_problem(response)


async def test_a_number_of_a_thousand_digits_is_refused(gateway: CheckedGateway) -> None:
    async with gateway.unchanged():
        for digits in (400, 5_000):
            raw = b'{"content": "x", "importance": ' + b"9" * digits + b"}"
            response = await gateway.client.post(MEMORIES, content=raw, headers=JSON)
            assert response.status_code == 422, response.text
            problem.parse_problem(response)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/x-ndjson"},
        {"content-type": "json"},
        {"content-type": "multipart/form-data; boundary=x"},
    ],
)
async def test_a_body_that_is_not_sent_as_json_is_a_415_on_every_route_that_reads_json(
    gateway: CheckedGateway, headers: dict[str, str]
) -> None:
    routes = await _routes_with_body(gateway, "application/json")
    assert len(routes) > 40
    async with gateway.unchanged():
        for method, path in routes:
            response = await gateway.client.request(method, path, content=b'{"a": 1}', headers=headers)
            assert response.status_code == 415, f"{method} {path}: {response.text}"
            assert problem.names_violation(response, "Content-Type", "must be application/json")


async def test_without_a_valid_key_the_type_of_a_body_is_no_matter(gateway: CheckedGateway) -> None:
    headers = {"authorization": "Bearer wrong", "content-type": "text/plain"}
    response = await gateway.client.post(MEMORIES, content=b"{}", headers=headers)
    assert response.status_code == 401


async def _routes_with_body(gateway: CheckedGateway, media_type: str) -> list[tuple[str, str]]:
    """Return the method and path of each route that declares a body of this type; 7 for every parameter."""
    document = (await gateway.client.get("/openapi.json")).json()
    return [
        (method.upper(), re.sub(r"{\w+}", "7", path))
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if media_type in operation.get("requestBody", {}).get("content", {})
    ]


@pytest.mark.parametrize("content_type", ["application/json", "application/merge-patch+json; charset=utf-8"])
async def test_a_body_may_be_sent_as_any_kind_of_json_and_an_absent_one_as_anything(
    gateway: CheckedGateway, content_type: str
) -> None:
    headers = {"content-type": content_type}
    saved = await gateway.client.post(MEMORIES, content=b'{"content": "kept"}', headers=headers)
    assert saved.status_code == 201, saved.text
    path = f"{MEMORIES}/{saved.json()['id']}/archive"
    archived = await gateway.client.post(path, headers={"content-type": "text/plain"})
    assert archived.status_code == 200, archived.text


async def test_lines_are_taken_under_any_type_but_neither_as_a_form_nor_compressed(
    gateway: CheckedGateway,
) -> None:
    line = b'{"id": "0123456789ab", "content": "a line"}'
    routes = await _routes_with_body(gateway, "application/x-ndjson")
    assert len(routes) == 3
    for method, path in routes:
        for content_type in ("application/x-ndjson", "application/x-www-form-urlencoded", "", None):
            headers = {} if content_type is None else {"content-type": content_type}
            response = await gateway.client.request(method, path, content=line, headers=headers)
            assert response.status_code == 200, f"{content_type}: {response.text}"
        async with gateway.unchanged():
            form = await gateway.client.request(method, path, files={"file": line})
            options: Any = {"content": gzip.compress(line), "headers": {"content-encoding": "gzip"}}
            compressed = await gateway.client.request(method, path, **options)
        assert problem.names_violation(form, "Content-Type", "no form")
        assert problem.names_violation(compressed, "Content-Encoding")
        assert (form.status_code, compressed.status_code) == (415, 415)


@pytest.mark.parametrize("coding", ["gzip", "GZIP", "br", "identity, gzip", "utf-8"])
async def test_a_coded_body_is_a_415_on_every_route(gateway: CheckedGateway, coding: str) -> None:
    paths: dict[str, Any] = (await gateway.client.get("/openapi.json")).json()["paths"]
    routes = [
        (method, path)
        for path, operations in paths.items()
        for method, operation in operations.items()
        if "requestBody" in operation
    ]
    assert len(routes) > 50
    headers = {"content-encoding": coding, **JSON}
    async with gateway.unchanged():
        for method, path in routes:
            address = re.sub(r"\{[^}]*\}", "7", path)
            response = await gateway.client.request(
                method, address, content=gzip.compress(b"{}"), headers=headers
            )
            assert problem.names_violation(response, "Content-Encoding", "must not be given"), address
            assert (response.status_code, response.headers["accept-encoding"]) == (415, "identity")


@pytest.mark.parametrize("coding", ["identity", "Identity", ""])
async def test_a_body_that_is_named_as_not_coded_is_read(gateway: CheckedGateway, coding: str) -> None:
    headers = {"content-encoding": coding, **JSON}
    response = await gateway.client.post(MEMORIES, content=b'{"content": "plain"}', headers=headers)
    assert response.status_code == 201, response.text


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/v1/nothing"), ("PUT", MEMORIES), ("TRACE", "/healthz")]
)
async def test_an_unknown_path_or_method_is_a_problem_too(
    gateway: CheckedGateway, method: str, path: str
) -> None:
    response = await gateway.client.request(method, path)
    assert response.status_code in (404, 405)
    problem.parse_problem(response)
