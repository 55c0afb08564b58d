"""Issue keys and recognise them.

A key reads `loci_<id>_<secret>`. The id finds the row in one look-up; the secret is compared
with its stored SHA-256 in constant time. Every way to be wrong gets the same answer. Nothing
is cached: a revoked key is refused by the very next request.
"""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast

from sqlalchemy import RowMapping

from shared.foundation import errors, validation
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
    """Create a key (and its tenant, if this is the first) and return it: it can't be read again."""
    validation.check_identifier(tenant, "tenant")
    Scope(tenant, DEFAULT_AGENT if agent_id is None else agent_id, user_id)  # refuses what is no account
    if namespace is not None:
        # The desk of a session whose id has a '/' is named with ':' in its place.
        validation.check_identifier(namespace.replace(":", "-"), "namespace")
    unknown = set(rights) - set(RIGHTS)
    if unknown or not rights:
        raise errors.Invalid("scope", f"must be some of {', '.join(RIGHTS)}")
    key_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    bound = {"agent_id": agent_id, "user_id": user_id, "namespace": namespace, "expires_at": expires_at}
    row = {"id": key_id, "tenant": tenant, "digest": _digest(secret), "rights": list(rights)}
    async with postgres.for_tenant(tenant) as connection:
        await queries.add_tenant(connection, tenant)
        await queries.add_key(connection, row | bound)
    return f"loci_{key_id}_{secret}"


async def authenticate(postgres: Postgres, key: str) -> Caller:
    """Return who a key belongs to; raise errors.Unauthenticated for any key that is not valid now."""
    key_id, secret = _parsed(key)
    async with postgres.autocommit() as connection:
        row = await queries.find_key(connection, key_id)
    if row is None or not hmac.compare_digest(row["digest"], _digest(secret)) or not _holds(row):
        raise errors.Unauthenticated("the key is unknown, expired or revoked")
    rights = frozenset(cast("list[Right]", row["rights"]))
    return Caller(key_id, row["tenant"], rights, row["agent_id"], row["user_id"], row["namespace"])


def _parsed(key: str) -> tuple[str, str]:
    parts = key.split("_", 2)
    if len(parts) != 3 or parts[0] != "loci" or not (key.isascii() and key.isprintable()):
        raise errors.Unauthenticated("the key is unknown, expired or revoked")
    return parts[1], parts[2]


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _holds(row: RowMapping) -> bool:
    expired = row["expires_at"] is not None and row["expires_at"] <= datetime.now(UTC)
    return row["revoked_at"] is None and not expired
