"""Everything a tenant has in the stores, read around the product: rows, desks, windows, points.

Read as the database's owner, whom no policy holds, from every table that has a `tenant` column:
a table that is added later is compared too.
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
    """Connections to the stores that see everything."""

    postgres: asyncpg.Connection
    redis: redis.asyncio.Redis
    qdrant: AsyncQdrantClient
    prefix: str

    async def of_tenant(self, tenant: str) -> State:
        """Return what the stores hold of a tenant, as name → content."""
        return await self.rows(tenant) | await self._keys(tenant) | await self._points(tenant)

    async def rows(self, tenant: str) -> State:
        """Return a tenant's rows as `table place` → the whole row.

        The place of a row on its page tells of an update, too, that left it as it was.
        """
        found: State = {}
        for table in await self.tables():
            statement = f"SELECT ctid::text, to_jsonb(t)::text FROM {table} t WHERE tenant = $1"  # noqa: S608
            found |= {f"{table} {place}": row for place, row in await self.postgres.fetch(statement, tenant)}
        return found

    async def tables(self) -> list[str]:
        """Return the tables that have a tenant."""
        return [row["table_name"] for row in await self.postgres.fetch(_TENANT_TABLES)]

    async def _keys(self, tenant: str) -> State:
        found: State = {}
        for mark in (f"{{{tenant}:*", f"{{{tenant}}}*"):
            async for key in self.redis.scan_iter(match=f"{self.prefix}:*:{mark}", count=1000):
                content, ends = await self.redis.dump(key), await self.redis.pexpiretime(key)
                found[f"redis {key!r}"] = f"{content!r} until {ends}"
        return found

    async def _points(self, tenant: str) -> State:
        mine = models.FieldCondition(key="tenant", match=models.MatchValue(value=tenant))
        found: State = {}
        for collection in (await self.qdrant.get_collections()).collections:
            if collection.name.startswith(f"{self.prefix}_"):
                points, _ = await self.qdrant.scroll(collection.name, models.Filter(must=[mine]), limit=1000)
                found |= {f"{collection.name} {point.id}": repr(point.payload) for point in points}
        return found


_TENANT_TABLES = (
    "SELECT table_name FROM information_schema.columns"
    " WHERE table_schema = 'public' AND column_name = 'tenant' ORDER BY 1"
)


@asynccontextmanager
async def watching(settings: config.Settings) -> AsyncIterator[StateInspector]:
    """Open an eye on the stores."""
    postgres = await asyncpg.connect(config.require_setting(settings.postgres_url, "LOCI_POSTGRES_URL"))
    keys = redis.asyncio.from_url(config.require_setting(settings.redis_url, "LOCI_REDIS_URL"))
    qdrant = AsyncQdrantClient(url=settings.qdrant_url, check_compatibility=False)
    try:
        yield StateInspector(postgres, keys, qdrant, settings.prefix)
    finally:
        await qdrant.close()
        await keys.aclose()
        await postgres.close()
