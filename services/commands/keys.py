"""Make, list and revoke keys."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table

from shared.foundation import config, errors
from shared.infra.postgres import Postgres
from shared.platform.auth import api_keys
from shared.platform.auth import queries as auth_queries

T = TypeVar("T")
DEV_TENANT = "default"


def create(
    tenant: str, agent: str | None, user: str | None, namespace: str | None, scope: str, days: float | None
) -> None:
    """Print a new key alone on standard output."""
    expires = None if days is None else datetime.now(UTC) + timedelta(days=days)
    rights = [right.strip() for right in scope.split(",") if right.strip()]
    bound: dict[str, Any] = {"agent_id": agent, "user_id": user, "namespace": namespace}
    key = _ask(lambda postgres: api_keys.issue(postgres, tenant, rights=rights, expires_at=expires, **bound))
    sys.stderr.write(f"tenant {tenant}; rights {', '.join(rights)}. This key is shown once:\n")
    sys.stdout.write(key + "\n")


def show(tenant: str | None) -> None:
    """Print a table of keys."""
    rows = _ask(lambda postgres: _keys(postgres, tenant))
    table = Table("id", "tenant", "rights", "agent", "user", "namespace", "created", "ends", "revoked")
    for row in rows:
        table.add_row(*(_cell(row[name]) for name in _SHOWN))
    Console().print(table)


_SHOWN = (
    "id",
    "tenant",
    "rights",
    "agent_id",
    "user_id",
    "namespace",
    "created_at",
    "expires_at",
    "revoked_at",
)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    return ",".join(value) if isinstance(value, list) else str(value)


async def _keys(postgres: Postgres, tenant: str | None) -> list[Any]:
    found: list[Any] = []
    for name in [tenant] if tenant else await _tenants(postgres):
        async with postgres.for_tenant(name) as connection:
            found += await auth_queries.list_keys(connection, name)
    return found


async def _tenants(postgres: Postgres) -> list[str]:
    async with postgres.across_tenants() as connection:
        return await auth_queries.list_tenants(connection)


def revoke(key: str) -> None:
    """Revoke a key by its id, or by the key itself."""
    parts = key.split("_", 2)
    key_id = parts[1] if key.startswith("loci_") and len(parts) > 1 else key
    if not _ask(lambda postgres: _revoke(postgres, key_id)):
        raise errors.NotFound(f"no valid key '{key_id}'")
    sys.stderr.write(f"revoked {key_id}\n")


async def _revoke(postgres: Postgres, key_id: str) -> bool:
    async with postgres.across_tenants() as connection:
        row = await auth_queries.find_key(connection, key_id)
    if row is None:
        return False
    async with postgres.for_tenant(row["tenant"]) as connection:
        return await auth_queries.revoke(connection, row["tenant"], key_id)


def ensure_dev() -> None:
    """Write a development key with all rights, mode 0600, unless a working one is there."""
    path = config.load().data_dir / "dev-key"
    if path.exists() and _ask(lambda postgres: _works(postgres, path.read_text().strip())):
        return
    key = _ask(lambda postgres: api_keys.issue(postgres, DEV_TENANT, rights=api_keys.RIGHTS))
    _write_private(path, key + "\n")


async def _works(postgres: Postgres, key: str) -> bool:
    try:
        await api_keys.authenticate(postgres, key)
    except errors.Unauthenticated:
        return False
    return True


def _write_private(path: Path, text: str) -> None:
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    fresh.replace(path)


def _ask(ask: Callable[[Postgres], Awaitable[T]]) -> T:
    async def whole() -> T:
        postgres = Postgres(config.load())
        try:
            return await ask(postgres)
        finally:
            await postgres.close()

    return asyncio.run(whole())
