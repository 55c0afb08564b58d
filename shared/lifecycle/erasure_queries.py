"""Statements on the receipts of erasures. Functions use the caller's transaction and never commit."""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import orjson
from sqlalchemy import RowMapping, delete, func, insert, select, text, update

from shared.foundation import errors
from shared.foundation.content import Subject
from shared.foundation.scope import Scope
from shared.infra.postgres import tenant_filter
from shared.infra.transaction import Transaction
from shared.jobs import removals
from shared.lifecycle.table import erasure
from shared.platform.auth import queries as auth_queries

_ADD_COUNTS = text(
    """
    UPDATE erasure SET counts = counts || (
        SELECT jsonb_object_agg(key, coalesce((counts ->> key)::bigint, 0) + value::bigint)
        FROM jsonb_each_text(CAST(:counts AS jsonb)))
    WHERE tenant = :tenant AND id = :id
    """
)


async def digest_of(tx: Transaction, subject: Subject, subject_id: str) -> bytes:
    """Return the keyed digest that stands for a user or an agent in receipts."""
    secret = await auth_queries.get_tenant_secret(tx, tx.tenant)
    return hmac.new(secret, f"{subject}\x1f{subject_id}".encode(), hashlib.sha256).digest()


async def add(
    tx: Transaction,
    erasure_id: str,
    subject: Subject,
    digest: bytes,
    subject_id: str | None,
    owner_digests: Sequence[bytes] = (),
) -> None:
    """Insert a receipt; `subject_id` is set while rows in Postgres are still to be deleted."""
    values = {
        "tenant": tx.tenant,
        "id": erasure_id,
        "subject": subject,
        "digest": digest,
        "subject_id": subject_id,
        "owner_digests": [owner_digest.hex() for owner_digest in owner_digests],
    }
    await tx.execute(insert(erasure).values(values))


async def get(tx: Transaction, erasure_id: str) -> RowMapping | None:
    """Return a receipt, or None."""
    where = (tenant_filter(erasure, tx.tenant), erasure.c.id == erasure_id)
    return (await tx.execute(select(erasure).where(*where))).mappings().one_or_none()


async def find_last(tx: Transaction, digest: bytes) -> RowMapping | None:
    """Return the last receipt for a user or an agent, or None."""
    where = (tenant_filter(erasure, tx.tenant), erasure.c.digest == digest)
    statement = select(erasure).where(*where).order_by(erasure.c.requested_at.desc()).limit(1)
    return (await tx.execute(statement)).mappings().one_or_none()


async def last_requested_at(tx: Transaction, digest: bytes) -> datetime | None:
    """Return when the erasure of a user or an agent was last asked for, or None."""
    where = (tenant_filter(erasure, tx.tenant), erasure.c.digest == digest)
    last: datetime | None = await tx.scalar(select(func.max(erasure.c.requested_at)).where(*where))
    return last


Erasures = list[datetime | None]
"""When a scope's agent and its user were last erased."""


async def list_last(tx: Transaction, scope: Scope) -> Erasures:
    """Return when a scope's agent and its user were last erased, and delay further erasures until the end.

    Whoever stores what was received in an earlier transaction compares both with what they were then.
    """
    owners = [(Subject.AGENT, scope.agent_id), (Subject.USER, scope.user_id)]
    moments: Erasures = []
    for subject, subject_id in owners:
        if subject_id is None:
            moments.append(None)
            continue
        await removals.lock_subject(tx, subject, subject_id, shared=True)
        digest = await digest_of(tx, subject, subject_id)
        moments.append(await last_requested_at(tx, digest))
    return moments


async def require_not_erased(tx: Transaction, scope: Scope, erasures: Erasures) -> None:
    """Raise errors.Conflict if the scope's agent or user was erased since `erasures` was read."""
    if await list_last(tx, scope) != erasures:
        raise errors.Conflict("the user or agent was erased meanwhile; what was not stored is dropped")


async def request_again(tx: Transaction, erasure_id: str) -> None:
    """Note that an erasure was asked for again."""
    where = (tenant_filter(erasure, tx.tenant), erasure.c.id == erasure_id)
    await tx.execute(update(erasure).where(*where).values(requested_at=func.clock_timestamp()))


async def add_counts(tx: Transaction, erasure_id: str, counts: Mapping[str, int]) -> None:
    """Add numbers to a receipt. A deletion without a receipt is left alone."""
    values = {"tenant": tx.tenant, "id": erasure_id, "counts": orjson.dumps(dict(counts)).decode()}
    if counts:
        await tx.execute(_ADD_COUNTS, values)


async def end_rows(tx: Transaction, erasure_id: str) -> None:
    """Note that Postgres is done, and clear the name of who was erased."""
    where = (tenant_filter(erasure, tx.tenant), erasure.c.id == erasure_id)
    await tx.execute(update(erasure).where(*where).values(subject_id=None))


async def expire(tx: Transaction, age: timedelta) -> int:
    """Delete receipts older than `age` whose work is done; return how many."""
    is_old = (erasure.c.subject_id.is_(None), erasure.c.requested_at < func.now() - age)
    return (await tx.execute(delete(erasure).where(tenant_filter(erasure, tx.tenant), *is_old))).rowcount
