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

from shared.infra.embedder import Vector, packed, unpacked
from shared.infra.postgres import owned_by
from shared.search.index.table import cached_vector

_NUMBER_SIZE = len(packed([0.0]))  # bytes


async def known(
    connection: AsyncConnection, tenant: str, model: str, dimension: int, passages: Sequence[str]
) -> dict[str, Vector]:
    """Return the vectors at hand, by passage.

    Those of another length than `dimension` come from another model of the same name: they are no use.
    """
    digests = {_digest(passage): passage for passage in passages}
    rows = await connection.execute(
        update(cached_vector)
        .where(
            owned_by(cached_vector, tenant),
            cached_vector.c.model == model,
            func.octet_length(cached_vector.c.vector) == dimension * _NUMBER_SIZE,
            cached_vector.c.digest.in_(list(digests)),
        )
        .values(used_at=func.now())
        .returning(cached_vector.c.digest, cached_vector.c.vector)
    )
    return {digests[bytes(row.digest)]: unpacked(row.vector) for row in rows}


async def keep(connection: AsyncConnection, tenant: str, model: str, fresh: Mapping[str, Vector]) -> None:
    """Keep vectors, by passage, in place of those of another length."""
    rows = [
        {"tenant": tenant, "model": model, "digest": _digest(passage), "vector": packed(vector)}
        for passage, vector in sorted(fresh.items())
    ]
    if rows:
        statement = insert(cached_vector)
        replacing = statement.on_conflict_do_update(
            index_elements=cached_vector.primary_key.columns,
            set_={"vector": statement.excluded.vector, "used_at": func.now()},
            where=func.octet_length(cached_vector.c.vector) != func.octet_length(statement.excluded.vector),
        )
        await connection.execute(replacing, rows)


async def forget(connection: AsyncConnection, tenant: str, passages: Sequence[str]) -> None:
    """Delete the vectors of texts that are forgotten."""
    mine = (owned_by(cached_vector, tenant), cached_vector.c.digest.in_([_digest(p) for p in passages]))
    await connection.execute(delete(cached_vector).where(*mine))


async def expire(connection: AsyncConnection, tenant: str, age: timedelta) -> int:
    """Delete vectors unused for `age`; return how many."""
    old = cached_vector.c.used_at < func.now() - age
    return (
        await connection.execute(delete(cached_vector).where(owned_by(cached_vector, tenant), old))
    ).rowcount


def _digest(passage: str) -> bytes:
    return hashlib.sha256(passage.encode()).digest()
