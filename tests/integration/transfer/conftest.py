"""Databases that are started once, and fixtures for an empty tenant in them."""

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
    """Yield settings with the URLs of running databases that have their schema and index."""
    folder = tmp_path_factory.mktemp("databases")
    postgres = Postgres(folder / "postgres", durable=False)
    redis, qdrant = Redis(folder / "redis"), Qdrant(folder / "qdrant")
    try:
        urls = {"postgres_url": postgres.start(), "redis_url": redis.start(), "qdrant_url": qdrant.start()}
        _migrate(urls["postgres_url"])
        loaded_settings = config.load(data_dir=folder, prefix="longterm", **urls)
        asyncio.run(_prepare(loaded_settings))
        yield loaded_settings
    finally:
        for database in (qdrant, redis, postgres):
            database.stop()


def _migrate(url: str) -> None:
    command = [sys.executable, "-m", "alembic", "upgrade", "head"]
    environment = os.environ | {"LOCI_POSTGRES_URL": url}
    migration = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert migration.returncode == 0, migration.stderr


async def _prepare(settings: config.Settings) -> None:
    async with open_resources(settings) as resources:
        await rebuild_index.prepare_index(resources)


@dataclass(frozen=True)
class TenantStack:
    """A tenant with the imports and exports of its memories."""

    resources: Resources
    tenant: str

    @property
    def caller(self) -> Caller:
        """Return a caller with every right in the tenant."""
        return Caller("importer", self.tenant, frozenset({"read", "write", "admin"}))

    def scope(self, agent: str = "a", user: str | None = None) -> Scope:
        """Return a scope of the tenant."""
        return Scope(self.tenant, agent, user)

    async def export_lines(self, scope: Scope | None = None) -> list[bytes]:
        """Export a scope and return its lines."""
        return [line async for line in transfer.export(self.resources, scope or self.scope())]

    async def export_memories(self, scope: Scope | None = None) -> list[dict[str, Any]]:
        """Export a scope and return its lines as parsed JSON."""
        return [orjson.loads(line) for line in await self.export_lines(scope)]

    async def import_lines(
        self, *lines: bytes | dict[str, Any], scope: Scope | None = None, restore: bool = False
    ) -> dict[str, Any]:
        """Import lines, which are bytes or objects; return the report."""
        chunks = [line if isinstance(line, bytes) else orjson.dumps(line) + b"\n" for line in lines]
        target_scope = scope or self.scope()
        return await transfer.import_stream(
            self.resources, target_scope, "importer", _stream(chunks), restore=restore
        )

    async def import_path(self, path: Path) -> dict[str, Any]:
        """Import the file or folder at a path; return the report."""
        return await transfer.import_path(self.resources, self.caller, self.scope(), path, restore=False)


async def _stream(chunks: list[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


@asynccontextmanager
async def new_stack(resources: Resources) -> AsyncIterator[TenantStack]:
    """Create an empty tenant and yield it."""
    tenant = uuid.uuid4().hex
    async with resources.postgres.for_tenant(tenant) as connection:
        await auth_queries.add_tenant(connection, tenant)
    yield TenantStack(resources, tenant)


@pytest_asyncio.fixture
async def resources(settings: config.Settings) -> AsyncIterator[Resources]:
    """Open and yield the clients of the databases."""
    async with open_resources(settings) as resources:
        yield resources


@pytest_asyncio.fixture
async def stack(resources: Resources) -> AsyncIterator[TenantStack]:
    """Create an empty tenant without a language model and yield it."""
    async with new_stack(resources) as stack:
        yield stack


@pytest_asyncio.fixture
async def stack_with_model(settings: config.Settings) -> AsyncIterator[TenantStack]:
    """Create an empty tenant with a language model, which is never called, and yield it."""
    model_settings = settings.model_copy(update={"llm_base_url": "http://127.0.0.1:9", "llm_model": "m"})
    async with open_resources(model_settings) as resources, new_stack(resources) as stack:
        yield stack
