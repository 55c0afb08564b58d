"""Read everything that a tenant has in the databases, without the product: rows, Redis keys and points.

Rows are read as the owner of the schema, to whom no policy applies, from every table with a `tenant`
column, so that tables which are added later are compared too.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg
import redis.asyncio
from qdrant_client import AsyncQdrantClient, models

from shared.foundation import config

State = dict[str, str]


@dataclass(frozen=True)
class StateInspector:
    """Connections to the databases that may read everything."""

    postgres: asyncpg.Connection
    redis: redis.asyncio.Redis
    qdrant: AsyncQdrantClient
    prefix: str

    async def tenant_state(self, tenant: str) -> State:
        """Return the contents of the databases for a tenant, by name."""
        return await self.rows(tenant) | await self._keys(tenant) | await self._points(tenant)

    async def rows(self, tenant: str) -> State:
        """Return a tenant's rows by table and physical position (ctid).

        The position changes with every update, even with one that changes no value.
        """
        contents: State = {}
        for table in await self.tables():
            statement = f"SELECT ctid::text, to_jsonb(t)::text FROM {table} t WHERE tenant = $1"  # noqa: S608
            contents |= {f"{table} {ctid}": row for ctid, row in await self.postgres.fetch(statement, tenant)}
        return contents

    async def tables(self) -> list[str]:
        """Return the names of the tables with a tenant."""
        return [row["table_name"] for row in await self.postgres.fetch(_TENANT_TABLES)]

    async def _keys(self, tenant: str) -> State:
        contents: State = {}
        for pattern in (f"{{{tenant}:*", f"{{{tenant}}}*"):
            async for key in self.redis.scan_iter(match=f"{self.prefix}:*:{pattern}", count=1000):
                content, expires_at = await self.redis.dump(key), await self.redis.pexpiretime(key)
                contents[f"redis {key!r}"] = f"{content!r} until {expires_at}"
        return contents

    async def _points(self, tenant: str) -> State:
        has_tenant = models.FieldCondition(key="tenant", match=models.MatchValue(value=tenant))
        tenant_filter = models.Filter(must=[has_tenant])
        contents: State = {}
        for collection in (await self.qdrant.get_collections()).collections:
            if collection.name.startswith(f"{self.prefix}_"):
                points, _ = await self.qdrant.scroll(collection.name, tenant_filter, limit=1000)
                contents |= {f"{collection.name} {point.id}": repr(point.payload) for point in points}
        return contents


_TENANT_TABLES = (
    "SELECT table_name FROM information_schema.columns"
    " WHERE table_schema = 'public' AND column_name = 'tenant' ORDER BY 1"
)


@asynccontextmanager
async def watching(settings: config.Settings) -> AsyncIterator[StateInspector]:
    """Open a StateInspector for the databases of these settings."""
    postgres = await asyncpg.connect(config.require_setting(settings.postgres_url, "LOCI_POSTGRES_URL"))
    redis_client = redis.asyncio.from_url(config.require_setting(settings.redis_url, "LOCI_REDIS_URL"))
    qdrant = AsyncQdrantClient(url=settings.qdrant_url, check_compatibility=False)
    try:
        yield StateInspector(postgres, redis_client, qdrant, settings.prefix)
    finally:
        await qdrant.close()
        await redis_client.aclose()
        await postgres.close()
