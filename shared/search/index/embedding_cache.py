"""Cache embeddings in Postgres by text and model, so that no text is embedded twice.

Thanks to the cache, rebuilding the index needs no model calls. The vectors belong to a tenant, and those
of a text are deleted together with the record.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from sqlalchemy import (
    ARRAY,
    Integer,
    LargeBinary,
    any_,
    bindparam,
    delete,
    func,
    literal,
    select,
    text,
    update,
)

from shared.infra.embedder import Vector, from_float32_bytes, to_float32_bytes
from shared.infra.postgres import tenant_filter
from shared.infra.transaction import Transaction
from shared.search.index.table import embedding_cache

_NUMBER_BYTES = len(to_float32_bytes([0.0]))


_FIND = (
    update(embedding_cache)
    .where(
        embedding_cache.c.tenant == bindparam("of_tenant"),
        embedding_cache.c.model == bindparam("of_model"),
        func.octet_length(embedding_cache.c.vector) == bindparam("bytes", type_=Integer),
        embedding_cache.c.digest == any_(bindparam("digests", type_=ARRAY(LargeBinary))),
    )
    .values(used_at=func.now())
    .returning(embedding_cache.c.digest, embedding_cache.c.vector)
)
_SAVE = text(
    """
    INSERT INTO embedding_cache (tenant, model, digest, vector)
    SELECT :tenant, :model, r.digest, r.vector FROM unnest(:digests, :vectors) AS r (digest, vector)
    ORDER BY r.digest
    ON CONFLICT (tenant, model, digest) DO UPDATE SET vector = excluded.vector, used_at = now()
    WHERE octet_length(embedding_cache.vector) <> octet_length(excluded.vector)
    """
).bindparams(bindparam("digests", type_=ARRAY(LargeBinary)), bindparam("vectors", type_=ARRAY(LargeBinary)))


async def find(tx: Transaction, model: str, dimension: int, texts: Sequence[str]) -> dict[str, Vector]:
    """Return the cached vectors by text.

    Vectors with another length than `dimension` are ignored: they come from another model of the same name.
    """
    digests = {_digest(text): text for text in texts}
    names = {"of_tenant": tx.tenant, "of_model": model, "digests": list(digests)}
    rows = await tx.fetch(_FIND, names | {"bytes": dimension * _NUMBER_BYTES})
    return {digests[bytes(row["digest"])]: from_float32_bytes(row["vector"]) for row in rows}


async def save(tx: Transaction, model: str, vectors: Mapping[str, Vector]) -> None:
    """Store vectors by text. They replace stored vectors of another length."""
    if vectors:
        columns = {"digests": [_digest(text) for text in vectors]}
        columns["vectors"] = [to_float32_bytes(vector) for vector in vectors.values()]
        await tx.fetch(_SAVE, {"tenant": tx.tenant, "model": model, **columns})


async def delete_cached(tx: Transaction, texts: Iterable[str]) -> None:
    """Delete the vectors of texts, of every model."""
    digests = literal([_digest(text) for text in texts], ARRAY(LargeBinary))
    await tx.execute(
        delete(embedding_cache).where(
            tenant_filter(embedding_cache, tx.tenant), embedding_cache.c.digest == any_(digests)
        )
    )


async def has_any(tx: Transaction) -> bool:
    """Return whether a tenant has cached vectors: without any, no text has to be read to delete some."""
    statement = select(embedding_cache.c.model).where(tenant_filter(embedding_cache, tx.tenant)).limit(1)
    return await tx.scalar(statement) is not None


async def expire(tx: Transaction, age: timedelta) -> int:
    """Delete the vectors that were not used for `age`; return their number."""
    is_unused = embedding_cache.c.used_at < func.now() - age
    statement = delete(embedding_cache).where(tenant_filter(embedding_cache, tx.tenant), is_unused)
    return (await tx.execute(statement)).rowcount


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
