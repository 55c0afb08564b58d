"""Real stores, started once, and tenants of one's own for long-term memory."""

import asyncio
import os
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
import pytest_asyncio

from services.local.postgres import Postgres
from services.local.qdrant import Qdrant
from services.local.redis import Redis
from shared.foundation import config
from shared.foundation.scope import Caller, Scope
from shared.lifecycle.reindex import rebuild as rebuild_index
from shared.lifecycle.transfer import transfer
from shared.platform.auth import queries as auth_queries
from shared.platform.resources import Resources, open_resources

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[config.Settings]:
    """Return settings that name running stores with schema and index."""
    folder = tmp_path_factory.mktemp("stores")
    postgres = Postgres(folder / "postgres", durable=False)
    redis, qdrant = Redis(folder / "redis"), Qdrant(folder / "qdrant")
    try:
        urls = {"postgres_url": postgres.start(), "redis_url": redis.start(), "qdrant_url": qdrant.start()}
        _migrate(urls["postgres_url"])
        stack = config.load(data_dir=folder, prefix="longterm", **urls)
        asyncio.run(_prepare(stack))
        yield stack
    finally:
        for store in (qdrant, redis, postgres):
            store.stop()


def _migrate(url: str) -> None:
    command = [sys.executable, "-m", "alembic", "upgrade", "head"]
    environment = os.environ | {"LOCI_POSTGRES_URL": url}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


async def _prepare(settings: config.Settings) -> None:
    async with open_resources(settings) as opened:
        await rebuild_index.prepare_index(opened)


@dataclass(frozen=True)
class TenantStack:
    """A tenant of its own, as an import sees it."""

    resources: Resources
    tenant: str

    @property
    def caller(self) -> Caller:
        """A key that may do anything in the tenant."""
        return Caller("importer", self.tenant, frozenset({"read", "write", "admin"}))

    def scope(self, agent: str = "a", user: str | None = None) -> Scope:
        """Return a scope of the tenant."""
        return Scope(self.tenant, agent, user)

    async def lines(self, scope: Scope | None = None) -> list[bytes]:
        """Export a scope."""
        return [line async for line in transfer.export(self.resources, scope or self.scope())]

    async def entries(self, scope: Scope | None = None) -> list[dict[str, Any]]:
        """Export a scope and read it."""
        return [orjson.loads(line) for line in await self.lines(scope)]

    async def import_entries(
        self, *entries: bytes | dict[str, Any], scope: Scope | None = None, restore: bool = False
    ) -> dict[str, Any]:
        """Import lines, given as objects or as they are."""
        raw = [entry if isinstance(entry, bytes) else orjson.dumps(entry) + b"\n" for entry in entries]
        target_scope = scope or self.scope()
        return await transfer.import_stream(
            self.resources, target_scope, "importer", _each(raw), restore=restore
        )

    async def import_path(self, path: Path) -> dict[str, Any]:
        """Import what lies at a path."""
        return await transfer.import_path(self.resources, self.caller, self.scope(), path, restore=False)


async def _each(chunks: list[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


@asynccontextmanager
async def new_stack(resources: Resources) -> AsyncIterator[TenantStack]:
    """Make an empty tenant."""
    tenant = uuid.uuid4().hex
    async with resources.postgres.for_tenant(tenant) as connection:
        await auth_queries.add_tenant(connection, tenant)
    yield TenantStack(resources, tenant)


@pytest_asyncio.fixture
async def resources(settings: config.Settings) -> AsyncIterator[Resources]:
    """Open the stores."""
    async with open_resources(settings) as opened:
        yield opened


@pytest_asyncio.fixture
async def stack(resources: Resources) -> AsyncIterator[TenantStack]:
    """Make an empty tenant where no model enriches."""
    async with new_stack(resources) as stack:
        yield stack


@pytest_asyncio.fixture
async def enriching(settings: config.Settings) -> AsyncIterator[TenantStack]:
    """Make an empty tenant where a model is configured; nobody calls it."""
    with_model = settings.model_copy(update={"llm_base_url": "http://127.0.0.1:9", "llm_model": "m"})
    async with open_resources(with_model) as opened, new_stack(opened) as stack:
        yield stack
