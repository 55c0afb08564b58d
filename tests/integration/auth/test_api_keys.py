"""API keys are shown once, stored as digests, and refused with the same error for every defect."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.platform.auth import api_keys
from shared.platform.auth import queries as auth_queries
from tests.conftest import Gateway

Postgres = Any
REFUSED = "the key is unknown, expired or revoked"


@pytest.fixture
def postgres(gateway: Gateway) -> Postgres:
    return gateway.resources.postgres


async def authenticated(postgres: Postgres, key: str) -> Caller:
    return await api_keys.authenticate(postgres, key)


async def test_a_key_authenticates_the_caller_it_was_issued_for(postgres: Postgres, tenant: str) -> None:
    bindings: dict[str, Any] = {"agent_id": "a", "user_id": "u", "namespace": "session/s"}
    key = await api_keys.issue(postgres, tenant, rights=["read"], **bindings)
    caller = await authenticated(postgres, key)
    assert caller == Caller(key.split("_")[1], tenant, frozenset({"read"}), "a", "u", "session/s")


async def test_rights_are_read_and_write_by_default(postgres: Postgres, tenant: str) -> None:
    caller = await authenticated(postgres, await api_keys.issue(postgres, tenant))
    assert caller.rights == {"read", "write"}
    assert (caller.agent_id, caller.user_id, caller.namespace) == (None, None, None)


async def test_the_secret_is_not_in_the_database(postgres: Postgres, tenant: str) -> None:
    key = await api_keys.issue(postgres, tenant)
    _, key_id, secret = key.split("_", 2)
    async with postgres.for_tenant(tenant) as tx:
        rows = (await tx.execute(text("SELECT k::text AS row FROM api_key k"))).scalars().all()
    assert any(key_id in row for row in rows)
    assert not any(secret in row for row in rows)
    assert len(secret) >= 43


async def test_no_two_keys_are_alike(postgres: Postgres, tenant: str) -> None:
    keys = [await api_keys.issue(postgres, tenant) for _ in range(5)]
    assert len({*keys}) == len({key.split("_")[1] for key in keys}) == 5


INVALID: dict[str, Callable[[str], str]] = {
    "empty": lambda _: "",
    "no prefix": lambda key: key.removeprefix("loci_"),
    "another prefix": lambda key: "iocl" + key[4:],
    "no secret": lambda key: key.rsplit("_", 1)[0] if key.count("_") == 2 else "loci_" + key.split("_")[1],
    "empty secret": lambda key: f"loci_{key.split('_')[1]}_",
    "another secret": lambda key: key[:-1] + ("A" if key[-1] != "A" else "B"),
    "a longer secret": lambda key: key + "x",
    "a space": lambda key: key + " ",
    "another id": lambda key: f"loci_{'0' * 12}_{key.split('_', 2)[2]}",
    "upper case": lambda key: key.upper(),
    "not ASCII": lambda key: key + "é",
    "a quote": lambda key: f"loci_'_{key.split('_', 2)[2]}",
    "NUL": lambda key: f"loci_\x00_{key.split('_', 2)[2]}",
    "long": lambda key: key + "x" * 100_000,
}


@pytest.mark.parametrize("defect", INVALID)
async def test_every_invalid_key_is_refused_with_the_same_error(
    postgres: Postgres, tenant: str, defect: str
) -> None:
    key = await api_keys.issue(postgres, tenant)
    with pytest.raises(errors.Unauthenticated, match=REFUSED):
        await authenticated(postgres, INVALID[defect](key))


async def test_an_expired_key_is_refused_and_one_that_will_expire_is_not(
    postgres: Postgres, tenant: str
) -> None:
    now = datetime.now(UTC)
    past = await api_keys.issue(postgres, tenant, expires_at=now - timedelta(seconds=1))
    future = await api_keys.issue(postgres, tenant, expires_at=now + timedelta(hours=1))
    with pytest.raises(errors.Unauthenticated, match=REFUSED):
        await authenticated(postgres, past)
    assert (await authenticated(postgres, future)).tenant == tenant


async def test_a_revoked_key_is_refused_by_the_very_next_request(gateway: Gateway) -> None:
    async with await gateway.new_client() as client:
        assert (await client.get("/v1/status")).status_code == 200
        key_id = client.headers["authorization"].split("_")[1]
        async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
            assert await auth_queries.revoke(tx, gateway.tenant, key_id)
            assert not await auth_queries.revoke(tx, gateway.tenant, key_id)
        response = await client.get("/v1/status")
        assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer")


async def test_a_tenant_revokes_and_lists_its_own_keys_only(postgres: Postgres, tenant: str) -> None:
    own_key, other = await api_keys.issue(postgres, tenant), f"t-{uuid4().hex[:12]}"
    other_key = await api_keys.issue(postgres, other)
    async with postgres.for_tenant(other) as tx:
        assert not await auth_queries.revoke(tx, other, own_key.split("_")[1])
        rows = await auth_queries.list_keys(tx, other)
    assert [row["id"] for row in rows] == [other_key.split("_")[1]]
    assert "digest" not in rows[0]
    assert (await authenticated(postgres, own_key)).tenant == tenant


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("tenant", {"tenant": "../x"}),
        ("tenant", {"tenant": "*"}),
        ("tenant", {"tenant": ""}),
        ("agent_id", {"agent_id": " "}),
        ("user_id", {"user_id": "a\nb"}),
        ("namespace", {"namespace": "/abs"}),
        ("scope", {"rights": ["read", "root"]}),
        ("scope", {"rights": []}),
    ],
)
async def test_a_key_with_an_invalid_tenant_binding_or_right_is_not_issued(
    postgres: Postgres, tenant: str, field: str, fields: dict[str, Any]
) -> None:
    with pytest.raises(errors.Invalid, match=f"^{field}: "):
        await api_keys.issue(postgres, **({"tenant": tenant} | fields))


async def test_a_key_may_be_bound_to_an_email_address(postgres: Postgres, tenant: str) -> None:
    key = await api_keys.issue(postgres, tenant, user_id="ada@example.org")
    assert (await authenticated(postgres, key)).user_id == "ada@example.org"
