"""Every statement on stored responses. The protocol is in `idempotent`."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import RowMapping, delete, func, insert, or_, select, tuple_, update

from shared.infra.postgres import advisory_lock_key, tenant_filter
from shared.infra.transaction import Transaction
from shared.platform.expiry_queries import shows_expired
from shared.platform.idempotency.table import idempotent_response


async def try_lock(tx: Transaction, route: str, key: str) -> bool:
    """Lock a request until the transaction ends, and return whether nobody else had locked it."""
    lock = func.pg_try_advisory_xact_lock(advisory_lock_key(tx.tenant, route, key))
    return bool(await tx.scalar(select(lock)))


# What is not in Postgres says nothing of its expiry afterwards.
_HAS_EXPIRED = or_(idempotent_response.c.expires_at <= func.now(), shows_expired(idempotent_response))


async def find(tx: Transaction, *names: tuple[str, str]) -> RowMapping | None:
    """Return the response that is stored under the first of some names, as (route, key), or None.

    Its column `has_expired` tells whether something that it shows has expired.
    """
    is_named = tuple_(idempotent_response.c.route, idempotent_response.c.key).in_(names)
    where = (tenant_filter(idempotent_response, tx.tenant), is_named)
    statement = select(idempotent_response, _HAS_EXPIRED.label("has_expired")).where(*where)
    found = {(row["route"], row["key"]): row for row in (await tx.execute(statement)).mappings()}
    return next((found[name] for name in names if name in found), None)


async def add(tx: Transaction, values: Mapping[str, Any]) -> None:
    """Store a response."""
    await tx.execute(insert(idempotent_response).values(dict(values)))


async def erase_responses(tx: Transaction, record_ids: Sequence[str]) -> None:
    """Erase the stored responses that repeat the text of these records, and whom they name."""
    where = (
        tenant_filter(idempotent_response, tx.tenant),
        idempotent_response.c.record_ids.overlap(list(record_ids)),
    )
    await tx.execute(update(idempotent_response).where(*where).values(body=None, record_ids=[], user_id=None))


async def expire(tx: Transaction, age: timedelta) -> int:
    """Delete stored responses older than `age`, and return how many."""
    is_expired = idempotent_response.c.created_at < func.now() - age
    return (
        await tx.execute(
            delete(idempotent_response).where(tenant_filter(idempotent_response, tx.tenant), is_expired)
        )
    ).rowcount
