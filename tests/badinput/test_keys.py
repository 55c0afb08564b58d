"""A key that is missing, malformed, unknown, expired or revoked gets the same 401."""

from datetime import UTC, datetime, timedelta

import httpx
import pytest

from shared.platform.auth import api_keys
from shared.platform.auth import queries as auth_queries
from tests.badinput import problem
from tests.badinput.conftest import CheckedGateway

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


async def _save_with(gateway: CheckedGateway, authorization: bytes | None) -> httpx.Response:
    headers = [] if authorization is None else [(b"authorization", authorization)]
    transport = gateway.client._transport
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway", headers=headers) as client:
        return await client.post("/v1/memories", json={"content": "smuggled in"})


def _assert_refused(response: httpx.Response) -> None:
    assert response.status_code == 401, response.text
    assert response.headers["www-authenticate"] == "Bearer"
    problem.parse_problem(response)


@pytest.mark.parametrize("authorization", [None, *MALFORMED], ids=lambda value: repr(value)[:40])
async def test_a_missing_or_malformed_key_is_a_401(
    gateway: CheckedGateway, authorization: bytes | None
) -> None:
    async with gateway.unchanged():
        _assert_refused(await _save_with(gateway, authorization))


async def test_a_key_is_refused_from_the_moment_it_expires_or_is_revoked(gateway: CheckedGateway) -> None:
    postgres, tenant = gateway.served.resources.postgres, gateway.served.tenant
    expired = await api_keys.issue(postgres, tenant, expires_at=datetime.now(UTC) - timedelta(seconds=1))
    revoked = await api_keys.issue(postgres, tenant)
    assert (await _save_with(gateway, f"Bearer {revoked}".encode())).status_code == 201
    async with postgres.for_tenant(tenant) as tx:
        assert await auth_queries.revoke(tx, tenant, revoked.split("_")[1])
    valid = await api_keys.issue(postgres, tenant)
    forged = valid[:-1] + ("a" if valid[-1] != "a" else "b")
    async with gateway.unchanged():
        responses = [
            await _save_with(gateway, f"Bearer {key}".encode()) for key in (expired, revoked, forged)
        ]
    for response in responses:
        _assert_refused(response)
    assert len({response.json()["detail"] for response in responses}) == 1, (
        "a refusal must not reveal the reason"
    )


async def test_routes_that_need_no_key_reveal_no_content(gateway: CheckedGateway) -> None:
    await gateway.client.post("/v1/memories", json={"content": "xyzzyplugh", "category": "xyzzyplugh"})
    transport = gateway.client._transport
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        for path in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"):
            response = await client.get(path)
            assert response.status_code == 200
            assert "xyzzyplugh" not in response.text
            assert gateway.served.tenant not in response.text
