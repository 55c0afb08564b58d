"""A database that is prepared once, and fixtures for an empty tenant in it."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
import pytest_asyncio

from shared.foundation import config
from shared.foundation.scope import Caller, Scope
from shared.lifecycle.reindex import rebuild as rebuild_index
from shared.lifecycle.transfer import import_path, memory_lines
from shared.platform.auth import queries as auth_queries
from shared.platform.resources import Resources, open_resources


@pytest.fixture(scope="session")
def settings(make_settings: Callable[..., config.Settings]) -> config.Settings:
    """Return settings with a database of its own that has its index."""
    loaded_settings = make_settings(apart=True)
    asyncio.run(_prepare(loaded_settings))
    return loaded_settings


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
        return [line async for line in memory_lines.export(self.resources, scope or self.scope())]

    async def export_memories(self, scope: Scope | None = None) -> list[dict[str, Any]]:
        """Export a scope and return its lines as parsed JSON."""
        return [orjson.loads(line) for line in await self.export_lines(scope)]

    async def import_lines(
        self, *lines: bytes | dict[str, Any], scope: Scope | None = None, restore: bool = False
    ) -> dict[str, Any]:
        """Import lines, which are bytes or objects; return the report."""
        chunks = [line if isinstance(line, bytes) else orjson.dumps(line) + b"\n" for line in lines]
        target_scope = scope or self.scope()
        return await memory_lines.import_stream(
            self.resources, target_scope, self.caller, _stream(chunks), restore=restore
        )

    async def import_path(self, path: Path) -> dict[str, Any]:
        """Import the file or folder at a path; return the report."""
        return await import_path.import_path(self.resources, self.caller, self.scope(), path, restore=False)


async def _stream(chunks: list[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


@asynccontextmanager
async def new_stack(resources: Resources) -> AsyncIterator[TenantStack]:
    """Create an empty tenant and yield it."""
    tenant = uuid.uuid4().hex
    async with resources.postgres.for_tenant(tenant) as tx:
        await auth_queries.add_tenant(tx, tenant)
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
