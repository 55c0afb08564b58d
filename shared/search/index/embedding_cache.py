"""Cache embeddings in Postgres by text and model, so that no text is embedded twice.

Thanks to the cache, rebuilding the index needs no model calls. The vectors belong to a tenant, and those
of a text are deleted together with the record.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from sqlalchemy import ARRAY, LargeBinary, any_, delete, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.infra.embedder import Vector, from_float32_bytes, to_float32_bytes
from shared.infra.postgres import tenant_filter
from shared.search.index.table import embedding_cache

_NUMBER_BYTES = len(to_float32_bytes([0.0]))


async def find(
    connection: AsyncConnection, tenant: str, model: str, dimension: int, texts: Sequence[str]
) -> dict[str, Vector]:
    """Return the cached vectors by text.

    Vectors with another length than `dimension` are ignored: they come from another model of the same name.
    """
    digests = {_digest(text): text for text in texts}
    rows = await connection.execute(
        update(embedding_cache)
        .where(
            tenant_filter(embedding_cache, tenant),
            embedding_cache.c.model == model,
            func.octet_length(embedding_cache.c.vector) == dimension * _NUMBER_BYTES,
            embedding_cache.c.digest.in_(list(digests)),
        )
        .values(used_at=func.now())
        .returning(embedding_cache.c.digest, embedding_cache.c.vector)
    )
    return {digests[bytes(row.digest)]: from_float32_bytes(row.vector) for row in rows}


async def save(connection: AsyncConnection, tenant: str, model: str, vectors: Mapping[str, Vector]) -> None:
    """Store vectors by text. They replace stored vectors of another length."""
    rows = [
        {"tenant": tenant, "model": model, "digest": _digest(text), "vector": to_float32_bytes(vector)}
        for text, vector in sorted(vectors.items())
    ]
    if rows:
        statement = insert(embedding_cache)
        upsert = statement.on_conflict_do_update(
            index_elements=embedding_cache.primary_key.columns,
            set_={"vector": statement.excluded.vector, "used_at": func.now()},
            where=func.octet_length(embedding_cache.c.vector) != func.octet_length(statement.excluded.vector),
        )
        await connection.execute(upsert, rows)


async def delete_cached(connection: AsyncConnection, tenant: str, texts: Iterable[str]) -> None:
    """Delete the vectors of texts, of every model."""
    digests = literal([_digest(text) for text in texts], ARRAY(LargeBinary))
    await connection.execute(
        delete(embedding_cache).where(
            tenant_filter(embedding_cache, tenant), embedding_cache.c.digest == any_(digests)
        )
    )


async def has_any(connection: AsyncConnection, tenant: str) -> bool:
    """Return whether a tenant has cached vectors: without any, no text has to be read to delete some."""
    statement = select(embedding_cache.c.model).where(tenant_filter(embedding_cache, tenant)).limit(1)
    return await connection.scalar(statement) is not None


async def expire(connection: AsyncConnection, tenant: str, age: timedelta) -> int:
    """Delete the vectors that were not used for `age`; return their number."""
    is_unused = embedding_cache.c.used_at < func.now() - age
    statement = delete(embedding_cache).where(tenant_filter(embedding_cache, tenant), is_unused)
    return (await connection.execute(statement)).rowcount


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
