"""Create, list and revoke API keys."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table

from shared.foundation import config, errors
from shared.foundation.atomic_file import write_atomically
from shared.infra.postgres import Postgres
from shared.platform.auth import api_keys

T = TypeVar("T")
DEV_TENANT = "default"


def create(
    tenant: str, agent: str | None, user: str | None, namespace: str | None, scope: str, days: float | None
) -> None:
    """Create a key and print it, and nothing else, to standard output."""
    expires_at = None if days is None else datetime.now(UTC) + timedelta(days=days)
    rights = [right.strip() for right in scope.split(",") if right.strip()]
    bindings: dict[str, Any] = {"agent_id": agent, "user_id": user, "namespace": namespace}
    key = _with_postgres(
        lambda postgres: api_keys.issue(postgres, tenant, rights=rights, expires_at=expires_at, **bindings)
    )
    sys.stderr.write(f"tenant {tenant}; rights {', '.join(rights)}. This key is shown once:\n")
    sys.stdout.write(key + "\n")


def show(tenant: str | None) -> None:
    """Print a table of keys, without their secrets."""
    rows = _with_postgres(lambda postgres: api_keys.list_keys(postgres, tenant))
    table = Table("id", "tenant", "rights", "agent", "user", "namespace", "created", "ends", "revoked")
    for row in rows:
        table.add_row(*(_format_cell(row[name]) for name in _COLUMNS))
    Console().print(table)


_COLUMNS = (
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


def _format_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    return ",".join(value) if isinstance(value, list) else str(value)


def revoke(key: str) -> None:
    """Revoke a key, given its id or the key itself. Raise errors.NotFound if it is unknown or revoked."""
    parts = key.split("_", 2)
    key_id = parts[1] if key.startswith("loci_") and len(parts) > 1 else key
    if not _with_postgres(lambda postgres: api_keys.revoke(postgres, key_id)):
        raise errors.NotFound(f"no valid key '{key_id}'")
    sys.stderr.write(f"revoked {key_id}\n")


def ensure_dev() -> bool:
    """Write a development key with all rights, with mode 0600, unless the file holds a valid one.

    Return whether it was written, which it is on the first start of a stack.
    """
    path = config.load().data_dir / "dev-key"
    if path.exists() and _with_postgres(lambda postgres: _is_valid(postgres, path.read_text().strip())):
        return False
    key = _with_postgres(lambda postgres: api_keys.issue(postgres, DEV_TENANT, rights=api_keys.RIGHTS))
    write_atomically(path, f"{key}\n".encode(), mode=0o600)
    return True


async def _is_valid(postgres: Postgres, key: str) -> bool:
    try:
        await api_keys.authenticate(postgres, key)
    except errors.Unauthenticated:
        return False
    return True


def _with_postgres(use: Callable[[Postgres], Awaitable[T]]) -> T:
    async def open_and_use() -> T:
        postgres = Postgres(config.load())
        try:
            return await use(postgres)
        finally:
            await postgres.close()

    return asyncio.run(open_and_use())
