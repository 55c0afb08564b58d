"""Read everything that a tenant has in the databases, without the product: rows, Redis keys and points.

Rows are read as the owner of the schema, to whom no policy applies, from every table with a `tenant`
column, so that tables which are added later are compared too.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import asyncpg
import redis.asyncio

from shared.foundation import config

State = dict[str, str]


@dataclass(frozen=True)
class StateInspector:
    """Connections to the databases that may read everything."""

    postgres: asyncpg.Connection
    redis: redis.asyncio.Redis
    qdrant: aiohttp.ClientSession
    prefix: str
    _tables: list[str] = field(default_factory=list)
    """The names of the tables with a tenant, once they have been read."""

    async def tenant_state(self, tenant: str) -> State:
        """Return the contents of the databases for a tenant, by name."""
        return await self.rows(tenant) | await self._keys(tenant) | await self._points(tenant)

    async def rows(self, tenant: str) -> State:
        """Return a tenant's rows by table and physical position (ctid).

        The position changes with every update, even with one that changes no value.
        """
        statement = " UNION ALL ".join(
            f"SELECT '{table} ' || ctid, to_jsonb(t)::text FROM {table} t WHERE tenant = $1"  # noqa: S608
            for table in await self.tables()
        )
        return dict(await self.postgres.fetch(statement, tenant))

    async def tables(self) -> list[str]:
        """Return the names of the tables with a tenant."""
        if not self._tables:
            self._tables.extend(row["table_name"] for row in await self.postgres.fetch(_TENANT_TABLES))
        return self._tables

    async def _keys(self, tenant: str) -> State:
        patterns = (f"{{{tenant}:".encode(), f"{{{tenant}}}".encode())
        found = self.redis.scan_iter(match=f"{self.prefix}:*:{{{tenant}*", count=10_000)
        keys = [key async for key in found if any(pattern in key for pattern in patterns)]
        async with self.redis.pipeline(transaction=False) as pipeline:
            for key in keys:
                pipeline.dump(key)
                pipeline.pexpiretime(key)
            values = await pipeline.execute()
        return {
            f"redis {key!r}": f"{content!r} until {expires_at}"
            for key, content, expires_at in zip(keys, values[::2], values[1::2], strict=True)
        }

    async def _points(self, tenant: str) -> State:
        has_tenant = {"must": [{"key": "tenant", "match": {"value": tenant}}]}
        body = {"filter": has_tenant, "limit": 1000, "with_payload": True}
        contents: State = {}
        for name in [row["name"] for row in (await self.ask_qdrant("GET", "collections"))["collections"]]:
            if name.startswith(f"{self.prefix}_"):
                found = await self.ask_qdrant("POST", f"collections/{name}/points/scroll", body)
                contents |= {f"{name} {point['id']}": repr(point["payload"]) for point in found["points"]}
        return contents

    async def ask_qdrant(self, method: str, path: str, body: Any = None) -> Any:
        """Send JSON to a path of Qdrant and return the result."""
        async with self.qdrant.request(method, f"/{path}", json=body) as response:
            response.raise_for_status()
            return (await response.json())["result"]


_TENANT_TABLES = (
    "SELECT table_name FROM information_schema.columns"
    " WHERE table_schema = 'public' AND column_name = 'tenant' ORDER BY 1"
)


@asynccontextmanager
async def watching(settings: config.Settings) -> AsyncIterator[StateInspector]:
    """Open a StateInspector for the databases of these settings."""
    postgres = await asyncpg.connect(config.require_setting(settings.postgres_url, "LOCI_POSTGRES_URL"))
    redis_client = redis.asyncio.from_url(config.require_setting(settings.redis_url, "LOCI_REDIS_URL"))
    qdrant = aiohttp.ClientSession(settings.qdrant_url)
    try:
        yield StateInspector(postgres, redis_client, qdrant, settings.prefix)
    finally:
        await qdrant.close()
        await redis_client.aclose()
        await postgres.close()
