"""Errors: a key that is missing, malformed, unknown, expired or revoked gets one and the same 401."""

from datetime import UTC, datetime, timedelta

import httpx
import pytest

from shared.platform.auth import api_keys
from shared.platform.auth import queries as auth_queries
from tests.badinput import problem
from tests.badinput.conftest import Door

MALFORMED = [
    b"Bearer",
    b"Bearer ",
    b"Bearer nonsense",
    b"Bearer loci_",
    b"Bearer loci__",
    b"Bearer loci_a_b",
    b"Bearer loci_abcdefabcdef_" + b"x" * 43,
    b"Bearer LOCI_abcdefabcdef_x",
    "Bearer loci_ключ_тайна".encode(),
    b"Bearer loci_\xe9_\xff",
    b"Bearer loci_a\x00b_c",
    b"Bearer loci_" + b"k" * 100_000 + b"_x",
    b"Bearer " + b"_" * 100_000,
    b"Basic bG9jaTpsb2Np",
    b"loci_abcdefabcdef_x",
    b"",
]


async def _ask(door: Door, authorization: bytes | None) -> httpx.Response:
    headers = [] if authorization is None else [(b"authorization", authorization)]
    transport = door.client._transport
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway", headers=headers) as client:
        return await client.post("/v1/memories", json={"content": "smuggled in"})


def _check_refused(answer: httpx.Response) -> None:
    assert answer.status_code == 401, answer.text
    assert answer.headers["www-authenticate"] == "Bearer"
    problem.read(answer)


@pytest.mark.parametrize("authorization", [None, *MALFORMED], ids=lambda value: repr(value)[:40])
async def test_a_missing_or_malformed_key_is_a_401(door: Door, authorization: bytes | None) -> None:
    async with door.unchanged():
        _check_refused(await _ask(door, authorization))


async def test_a_key_is_refused_from_the_moment_it_expires_or_is_revoked(door: Door) -> None:
    postgres, tenant = door.gateway.resources.postgres, door.gateway.tenant
    expired = await api_keys.issue(postgres, tenant, expires_at=datetime.now(UTC) - timedelta(seconds=1))
    revoked = await api_keys.issue(postgres, tenant)
    assert (await _ask(door, f"Bearer {revoked}".encode())).status_code == 201
    async with postgres.for_tenant(tenant) as connection:
        assert await auth_queries.revoke(connection, tenant, revoked.split("_")[1])
    valid = await api_keys.issue(postgres, tenant)
    forged = valid[:-1] + ("a" if valid[-1] != "a" else "b")
    async with door.unchanged():
        answers = [await _ask(door, f"Bearer {key}".encode()) for key in (expired, revoked, forged)]
    for answer in answers:
        _check_refused(answer)
    assert len({answer.json()["detail"] for answer in answers}) == 1, "a refusal must not say which it was"


async def test_what_needs_no_key_says_nothing_of_anybody(door: Door) -> None:
    await door.client.post("/v1/memories", json={"content": "xyzzyplugh", "category": "xyzzyplugh"})
    transport = door.client._transport
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        for path in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"):
            answer = await client.get(path)
            assert answer.status_code == 200
            assert "xyzzyplugh" not in answer.text
            assert door.gateway.tenant not in answer.text
