"""Statements on removals: what deletions have still to remove from Redis and Qdrant.

A removal is written in the transaction that deletes the rows, so that neither an unavailable database nor
the death of a process makes it forgotten. One job of the stage `remove` stands for all removals of an
operation, which is a deletion. Functions use the caller's transaction and never commit.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, bindparam, delete, func, not_, or_, select, text, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import Text

from shared.foundation.content import Subject
from shared.foundation.scope import Scope
from shared.foundation.stages import INDEX, REMOVE, Pipeline, RecordKind
from shared.infra.postgres import advisory_lock_key, is_any_of, seconds, tenant_filter
from shared.infra.transaction import Connection, Transaction
from shared.jobs import queries
from shared.jobs.table import job as job_table
from shared.jobs.table import removal

RECHECK_SECONDS = 10.0
"""After this time, what a request was still writing during a deletion has been written."""


class Family(NamedTuple):
    """A family of keys or points in one store."""

    store: str
    name: str


async def lock_subject(tx: Transaction, subject: Subject, subject_id: str, *, shared: bool = False) -> None:
    """Lock a user or an agent until the transaction ends, for their erasure.

    Whoever writes for them what Postgres does not hold, or what was received in an earlier transaction,
    locks them `shared`.
    """
    key = advisory_lock_key(tx.tenant, "erasure", subject, subject_id)
    lock = func.pg_advisory_xact_lock_shared(key) if shared else func.pg_advisory_xact_lock(key)
    await tx.execute(select(lock))


async def delay_erasures(tx: Transaction, scope: Scope) -> None:
    """Let nobody erase the agent and the user of a scope until the transaction ends.

    Whoever starts work on what they have, or stores for them what was received in an earlier transaction,
    calls this before it locks anything else, and then looks whether it is still there: an erasure deletes the
    rows that it sees.
    """
    await lock_subject(tx, Subject.AGENT, scope.agent_id, shared=True)
    if scope.user_id is not None:
        await lock_subject(tx, Subject.USER, scope.user_id, shared=True)


_ADD = text(
    """
    INSERT INTO removal (tenant, operation_id, store, family, item)
    SELECT :tenant, :operation_id, :store, :family, item FROM unnest(:items) AS item
    ON CONFLICT DO NOTHING
    """
).bindparams(bindparam("items", type_=ARRAY(Text)))


async def add(
    tx: Transaction, operation_id: str, items: Mapping[Family, Collection[str]], *, delay: float
) -> None:
    """Write down what an operation has to remove, and make it due in `delay` seconds if it is anything."""
    for family, names in items.items():
        values = {"tenant": tx.tenant, "operation_id": operation_id, "items": sorted(names)}
        if names:
            await tx.execute(_ADD, values | {"store": family.store, "family": family.name})
    if any(items.values()):
        await schedule(tx, tx.tenant, operation_id, delay)


async def schedule(tx: Connection, tenant: str, operation_id: str, delay: float) -> None:
    """Make the rest of an operation due in `delay` seconds."""
    versions = {operation_id: 1}
    await queries.enqueue(tx, tenant, RecordKind.REMOVAL, REMOVE, versions, delay=delay)


async def list_families(tx: Transaction, operation_id: str) -> list[Family]:
    """Return the families of which something is to be removed now."""
    statement = select(removal.c.store, removal.c.family).where(
        *_of_operation(tx.tenant, operation_id), _is_due()
    )
    # Redis first: it is fast, and what it holds is readable by its own routes.
    ordered = statement.distinct().order_by(removal.c.store.desc(), removal.c.family)
    rows = await tx.execute(ordered)
    return [Family(row.store, row.family) for row in rows]


async def list_items(tx: Transaction, operation_id: str, family: Family, limit: int) -> dict[str, datetime]:
    """Return up to `limit` items of a family that are to be removed now, with the times of their deletion."""
    where = (*_of_operation(tx.tenant, operation_id), *_of_family(family), _is_due())
    statement = select(removal.c.item, removal.c.deleted_at).where(*where)
    rows = await tx.execute(statement.order_by(removal.c.item).limit(limit))
    return {row.item: row.deleted_at for row in rows}


async def complete(
    tx: Transaction, operation_id: str, family: Family, items: Sequence[str], *, recheck: bool = False
) -> None:
    """Strike off removed items. With `recheck`, those of the first time stay, to be removed once more."""
    where = (*_of_operation(tx.tenant, operation_id), *_of_family(family), is_any_of(removal.c.item, items))
    if recheck:
        await tx.execute(delete(removal).where(*where, removal.c.removed_at.is_not(None)))
        await tx.execute(update(removal).where(*where).values(removed_at=func.now()))
    else:
        await tx.execute(delete(removal).where(*where))


async def count_pending(tx: Transaction, operation_id: str) -> dict[str, int]:
    """Return how much is still to be removed for the first time, by store."""
    where = (*_of_operation(tx.tenant, operation_id), removal.c.removed_at.is_(None))
    statement = select(removal.c.store, func.count().label("rows")).where(*where).group_by(removal.c.store)
    return {row.store: row.rows for row in await tx.execute(statement)}


async def has_rest(tx: Transaction, operation_id: str) -> bool:
    """Return whether anything of an operation is left, for the first or for the second time."""
    statement = select(removal.c.item).where(*_of_operation(tx.tenant, operation_id)).limit(1)
    return await tx.scalar(statement) is not None


async def has_pending_keys(tx: Transaction, items: Sequence[str]) -> bool:
    """Return whether one of these is still to be removed from Redis, whatever the operation."""
    where = (tenant_filter(removal, tx.tenant), removal.c.store == "redis", is_any_of(removal.c.item, items))
    statement = select(removal.c.item).where(*where, removal.c.removed_at.is_(None)).limit(1)
    return await tx.scalar(statement) is not None


async def finish(tx: Transaction, operation_id: str) -> None:
    """Delete the job of an operation of which nothing is left."""
    is_job = (job_table.c.kind == RecordKind.REMOVAL, job_table.c.record_id == operation_id)
    rest = select(removal.c.item).where(*_of_operation(tx.tenant, operation_id)).exists()
    await tx.execute(delete(job_table).where(tenant_filter(job_table, tx.tenant), *is_job, not_(rest)))


def _of_operation(tenant: str, operation_id: str) -> tuple[ColumnElement[bool], ...]:
    return tenant_filter(removal, tenant), removal.c.operation_id == operation_id


def _of_family(family: Family) -> tuple[ColumnElement[bool], ...]:
    return removal.c.store == family.store, removal.c.family == family.name


def _is_due() -> ColumnElement[bool]:
    is_old = removal.c.removed_at <= func.now() - seconds(RECHECK_SECONDS)
    return or_(removal.c.removed_at.is_(None), and_(removal.c.removed_at.is_not(None), is_old))


_LOCK_INDEX_JOBS = text(
    """
    SELECT count(*) FROM (
        SELECT 1 FROM job WHERE tenant = :tenant AND kind = :kind AND record_id = ANY (:record_ids)
        ORDER BY record_id, generation FOR UPDATE
    ) AS locked
    """
).bindparams(bindparam("record_ids", type_=ARRAY(Text)))


async def end_jobs(tx: Transaction, kind: RecordKind, record_ids: Sequence[str], *, delay: float) -> None:
    """End the work on deleted records: claims become invalid, and only index jobs stay.

    Who is writing a point of such a record has an index job. It runs once more in `delay` seconds, finds
    no record and deletes the point that may have been written meanwhile.
    """
    values = {"tenant": tx.tenant, "kind": kind, "record_ids": list(record_ids)}
    await tx.execute(_LOCK_INDEX_JOBS, values)
    where = (
        tenant_filter(job_table, tx.tenant),
        job_table.c.kind == kind,
        is_any_of(job_table.c.record_id, record_ids),
    )
    await tx.execute(delete(job_table).where(*where, job_table.c.pipeline != Pipeline.INDEX))
    values_of_reset = {
        "stage": INDEX.name,
        "version": job_table.c.version + 1,
        "lease_token": None,
        "attempts": 0,
        "run_at": func.now() + seconds(delay),
        "last_error": None,
        "reason_code": None,
        "dead_at": None,
    }
    await tx.execute(update(job_table).where(*where).values(values_of_reset))
