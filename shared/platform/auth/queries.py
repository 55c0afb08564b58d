"""Every statement on tenants and API keys."""

import secrets
from collections.abc import Sequence
from typing import Any

from sqlalchemy import RowMapping, func, insert, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert

from shared.infra import prepared
from shared.infra.postgres import tenant_filter
from shared.infra.transaction import Connection, FleetTransaction, Transaction
from shared.platform.auth.table import api_key, tenant, tenant_secret


async def add_tenant(tx: Transaction, name: str) -> None:
    """Create a tenant, with the secret that its digests are keyed with, unless it exists."""
    await tx.execute(upsert(tenant).values(tenant=name).on_conflict_do_nothing())
    secret = upsert(tenant_secret).values(tenant=name, secret=secrets.token_bytes(32))
    await tx.execute(secret.on_conflict_do_nothing())


async def list_tenants(tx: FleetTransaction) -> list[str]:
    """Return the names of all tenants in a transaction across tenants, otherwise only the tenant's own."""
    return list((await tx.scalars(select(tenant.c.tenant).order_by(tenant.c.tenant))).all())


_FIND_SECRET = text("SELECT secret FROM tenant_secret WHERE tenant = :tenant")


async def get_tenant_secret(tx: Transaction, name: str) -> bytes:
    """Return the secret that the tenant's digests are keyed with."""
    [row] = await tx.fetch(_FIND_SECRET, {"tenant": name})
    return bytes(row["secret"])


async def add_key(tx: Transaction, values: dict[str, Any]) -> None:
    """Store a key."""
    await tx.execute(insert(api_key).values(values))


_FIND_KEY = text("SELECT * FROM find_api_key(:id)")


async def find_key(tx: Connection, key_id: str) -> prepared.Row | None:
    """Return a key by id, whatever its tenant; None if there is none.

    This is the only statement that runs before the tenant is known, so it uses a database function
    that is exempt from row-level security.
    """
    return await tx.fetch_one(_FIND_KEY, {"id": key_id})


async def list_keys(tx: Transaction, name: str) -> Sequence[RowMapping]:
    """Return a tenant's keys, oldest first, without their digests."""
    columns = [column for column in api_key.c if column.name != "digest"]
    statement = select(*columns).where(tenant_filter(api_key, name)).order_by(api_key.c.created_at)
    return (await tx.execute(statement)).mappings().all()


async def revoke(tx: Transaction, name: str, key_id: str) -> bool:
    """Revoke a key from now on, and return whether there was a valid key to revoke."""
    statement = (
        update(api_key)
        .where(tenant_filter(api_key, name), api_key.c.id == key_id, api_key.c.revoked_at.is_(None))
        .values(revoked_at=func.now())
        .returning(api_key.c.id)
    )
    return (await tx.scalar(statement)) is not None
