"""Issue, authenticate, list and revoke API keys.

A key has the form `loci_<id>_<secret>`. The id finds the row in one look-up; the secret is compared
with its stored SHA-256 in constant time. Every invalid key gets the same error, so that the error
does not reveal which ids exist. Nothing is cached: a revoked key is refused by the very next request.
"""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast

from sqlalchemy import RowMapping

from shared.foundation import errors, validation
from shared.foundation.ids import new_record_id
from shared.foundation.scope import DEFAULT_AGENT, Caller, Right, Scope
from shared.infra.postgres import Postgres
from shared.platform.auth import queries

RIGHTS: tuple[Right, ...] = ("read", "write", "admin")
DEFAULT_RIGHTS: tuple[Right, ...] = ("read", "write")


async def issue(
    postgres: Postgres,
    tenant: str,
    *,
    rights: Sequence[str] = DEFAULT_RIGHTS,
    agent_id: str | None = None,
    user_id: str | None = None,
    namespace: str | None = None,
    expires_at: datetime | None = None,
) -> str:
    """Create a key, and its tenant if this is the tenant's first key, and return the key.

    The key can't be read again later. Raise errors.Invalid for a tenant, binding or right that is
    not valid.
    """
    validation.check_identifier(tenant, "tenant")
    Scope(tenant, DEFAULT_AGENT if agent_id is None else agent_id, user_id)  # validates both ids
    if namespace is not None:
        # The namespace of a session whose id contains '/' has ':' in its place.
        validation.check_identifier(namespace.replace(":", "-"), "namespace")
    unknown_rights = set(rights) - set(RIGHTS)
    if unknown_rights or not rights:
        raise errors.Invalid("scope", f"must be some of {', '.join(RIGHTS)}")
    key_id, secret = new_record_id(), secrets.token_urlsafe(32)
    limits = {"agent_id": agent_id, "user_id": user_id, "namespace": namespace, "expires_at": expires_at}
    row = {"id": key_id, "tenant": tenant, "digest": _digest(secret), "rights": list(rights)}
    async with postgres.for_tenant(tenant) as tx:
        await queries.add_tenant(tx, tenant)
        await queries.add_key(tx, row | limits)
    return f"loci_{key_id}_{secret}"


async def authenticate(postgres: Postgres, key: str) -> Caller:
    """Return the caller that a key belongs to.

    Raise errors.Unauthenticated for every key that is not valid now.
    """
    key_id, secret = _parse_key(key)
    async with postgres.autocommit() as tx:
        row = await queries.find_key(tx, key_id)
    if row is None or not hmac.compare_digest(row["digest"], _digest(secret)) or not _is_valid(row):
        raise errors.Unauthenticated("the key is unknown, expired or revoked")
    rights = frozenset(cast("list[Right]", row["rights"]))
    return Caller(key_id, row["tenant"], rights, row["agent_id"], row["user_id"], row["namespace"])


async def list_keys(postgres: Postgres, tenant: str | None) -> list[RowMapping]:
    """Return the keys of a tenant, or of all tenants, oldest first within each, without their digests."""
    keys: list[RowMapping] = []
    for name in [tenant] if tenant else await _list_tenants(postgres):
        async with postgres.for_tenant(name) as tx:
            keys += await queries.list_keys(tx, name)
    return keys


async def _list_tenants(postgres: Postgres) -> list[str]:
    async with postgres.across_tenants() as tx:
        return await queries.list_tenants(tx)


async def revoke(postgres: Postgres, key_id: str) -> bool:
    """Revoke a key of any tenant from now on, and return whether there was a valid key to revoke."""
    async with postgres.across_tenants() as tx:
        row = await queries.find_key(tx, key_id)
    if row is None:
        return False
    async with postgres.for_tenant(row["tenant"]) as tx:
        return await queries.revoke(tx, row["tenant"], key_id)


async def ensure_tenant(postgres: Postgres, tenant: str) -> None:
    """Create a tenant unless it exists. It has no key yet, but the command line can import into it."""
    async with postgres.for_tenant(tenant) as tx:
        await queries.add_tenant(tx, tenant)


def _parse_key(key: str) -> tuple[str, str]:
    parts = key.split("_", 2)
    if len(parts) != 3 or parts[0] != "loci" or not (key.isascii() and key.isprintable()):
        raise errors.Unauthenticated("the key is unknown, expired or revoked")
    return parts[1], parts[2]


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _is_valid(row: RowMapping) -> bool:
    is_expired = row["expires_at"] is not None and row["expires_at"] <= datetime.now(UTC)
    return row["revoked_at"] is None and not is_expired
