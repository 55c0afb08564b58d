"""Vectors that were computed before: by content and model, so that no text is embedded twice.

They live with their tenant in Postgres, go when the text is forgotten, and make a rebuilt index
cost no model calls.
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import timedelta

from sqlalchemy import delete, func, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.infra.embedder import Vector, from_float32_bytes, to_float32_bytes
from shared.infra.postgres import tenant_filter
from shared.search.index.table import embedding_cache

_NUMBER_SIZE = len(to_float32_bytes([0.0]))  # bytes


async def find(
    connection: AsyncConnection, tenant: str, model: str, dimension: int, passages: Sequence[str]
) -> dict[str, Vector]:
    """Return the vectors at hand, by passage.

    Those of another length than `dimension` come from another model of the same name: they are no use.
    """
    digests = {_digest(passage): passage for passage in passages}
    rows = await connection.execute(
        update(embedding_cache)
        .where(
            tenant_filter(embedding_cache, tenant),
            embedding_cache.c.model == model,
            func.octet_length(embedding_cache.c.vector) == dimension * _NUMBER_SIZE,
            embedding_cache.c.digest.in_(list(digests)),
        )
        .values(used_at=func.now())
        .returning(embedding_cache.c.digest, embedding_cache.c.vector)
    )
    return {digests[bytes(row.digest)]: from_float32_bytes(row.vector) for row in rows}


async def save(connection: AsyncConnection, tenant: str, model: str, fresh: Mapping[str, Vector]) -> None:
    """Keep vectors, by passage, in place of those of another length."""
    rows = [
        {"tenant": tenant, "model": model, "digest": _digest(passage), "vector": to_float32_bytes(vector)}
        for passage, vector in sorted(fresh.items())
    ]
    if rows:
        statement = insert(embedding_cache)
        replacing = statement.on_conflict_do_update(
            index_elements=embedding_cache.primary_key.columns,
            set_={"vector": statement.excluded.vector, "used_at": func.now()},
            where=func.octet_length(embedding_cache.c.vector) != func.octet_length(statement.excluded.vector),
        )
        await connection.execute(replacing, rows)


async def delete_cached(connection: AsyncConnection, tenant: str, passages: Sequence[str]) -> None:
    """Delete the vectors of texts that are forgotten."""
    mine = (
        tenant_filter(embedding_cache, tenant),
        embedding_cache.c.digest.in_([_digest(p) for p in passages]),
    )
    await connection.execute(delete(embedding_cache).where(*mine))


async def expire(connection: AsyncConnection, tenant: str, age: timedelta) -> int:
    """Delete vectors unused for `age`; return how many."""
    old = embedding_cache.c.used_at < func.now() - age
    return (
        await connection.execute(delete(embedding_cache).where(tenant_filter(embedding_cache, tenant), old))
    ).rowcount


def _digest(passage: str) -> bytes:
    return hashlib.sha256(passage.encode()).digest()
