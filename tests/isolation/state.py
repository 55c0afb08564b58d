"""Everything a tenant has in the stores, read around the product: rows, desks, windows, points.

Read as the database's owner, whom no policy holds, from every table that has a `tenant` column:
a table that is added later is compared too.
"""

import asyncpg
import redis.asyncio
from qdrant_client import AsyncQdrantClient, models

from shared import config

State = dict[str, str]


async def of_tenant(settings: config.Settings, tenant: str) -> State:
    """Return what the stores hold of a tenant, as name → content."""
    rows = await rows_of(settings, tenant)
    return rows | await _keys(settings, tenant) | await _points(settings, tenant)


async def rows_of(settings: config.Settings, tenant: str) -> State:
    """Return a tenant's rows as `table key` → the whole row."""
    connection = await asyncpg.connect(config.required(settings.postgres_url, "LOCI_POSTGRES_URL"))
    try:
        state: State = {}
        for table in await tenant_tables(connection):
            found = await connection.fetch(
                f"SELECT ctid::text, to_jsonb(t)::text FROM {table} t WHERE tenant = $1",  # noqa: S608
                tenant,
            )
            # The place of a row on its page tells of an update that left it as it was.
            state |= {f"{table} {place}": row for place, row in found}
        return state
    finally:
        await connection.close()


async def tenant_tables(connection: asyncpg.Connection) -> list[str]:
    """Return the tables that have a tenant."""
    rows = await connection.fetch(
        "SELECT table_name FROM information_schema.columns"
        " WHERE table_schema = 'public' AND column_name = 'tenant' ORDER BY 1"
    )
    return [row["table_name"] for row in rows]


async def _keys(settings: config.Settings, tenant: str) -> State:
    client = redis.asyncio.from_url(config.required(settings.redis_url, "LOCI_REDIS_URL"))
    try:
        state: State = {}
        for mark in ("{%s:*", "{%s}*"):
            async for key in client.scan_iter(match=f"{settings.prefix}:*:{mark % tenant}", count=1000):
                content, ends = await client.dump(key), await client.pexpiretime(key)
                state[f"redis {key!r}"] = f"{content!r} until {ends}"
        return state
    finally:
        await client.aclose()


async def _points(settings: config.Settings, tenant: str) -> State:
    client = AsyncQdrantClient(url=settings.qdrant_url, check_compatibility=False)
    mine = models.FieldCondition(key="tenant", match=models.MatchValue(value=tenant))
    try:
        state: State = {}
        for collection in (await client.get_collections()).collections:
            if collection.name.startswith(f"{settings.prefix}_"):
                found, _ = await client.scroll(collection.name, models.Filter(must=[mine]), limit=1000)
                state |= {f"{collection.name} {point.id}": repr(point.payload) for point in found}
        return state
    finally:
        await client.close()
