"""Bodies that are too large, not JSON, or built to break a parser."""

import json
from collections.abc import AsyncIterator

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


async def test_another_content_type_is_refused(gateway: CheckedGateway) -> None:
    raw = json.dumps({"content": "a form"}).encode()
    async with gateway.unchanged():
        for content_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            response = await gateway.client.post(
                MEMORIES, content=raw, headers={"content-type": content_type}
            )
            problem.parse_problem(response)


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/v1/nothing"), ("PUT", MEMORIES), ("TRACE", "/healthz")]
)
async def test_an_unknown_path_or_method_is_a_problem_too(
    gateway: CheckedGateway, method: str, path: str
) -> None:
    response = await gateway.client.request(method, path)
    assert response.status_code in (404, 405)
    problem.parse_problem(response)
