"""What a request has written that search is to find, and how much of it search doesn't find yet.

A request that waits collects the records that it enqueues for the index, wherever in the code that is: the
collection belongs to the task that serves the request.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from sqlalchemy import Text, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY

from shared.foundation import errors
from shared.foundation.stages import RecordKind
from shared.infra.postgres import Postgres
from shared.jobs.status import NAMES

# Between two looks: a keyword point is confirmed after 50 ms, an embedding takes longer.
_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.06, 0.25

_COUNT_PENDING = text(
    """
    SELECT w.stage, count(*) AS jobs, bool_and(w.dead_at IS NOT NULL) AS is_dead
    FROM job w JOIN index_generation g ON g.id = w.generation AND g.state = 'live'
    WHERE w.tenant = :tenant AND w.pipeline = 'index'
      AND (w.kind, w.record_id) IN (SELECT * FROM unnest(:kinds, :record_ids))
    GROUP BY w.stage
    """
).bindparams(bindparam("kinds", type_=ARRAY(Text)), bindparam("record_ids", type_=ARRAY(Text)))


@dataclass(slots=True)
class WrittenRecords:
    """The records that one request has written, as (kind, record id), and their tenant."""

    tenant: str = ""
    records: set[tuple[RecordKind, str]] = field(default_factory=set)


_collected: ContextVar[WrittenRecords | None] = ContextVar("written_records", default=None)


@contextmanager
def collect() -> Iterator[WrittenRecords]:
    """Collect what this task writes within the block."""
    written = WrittenRecords()
    token = _collected.set(written)
    try:
        yield written
    finally:
        _collected.reset(token)


def note(tenant: str, kind: RecordKind, record_ids: Iterable[str]) -> None:
    """Note that this task has written records, if anybody collects that."""
    written = _collected.get()
    if written is not None:
        written.tenant = tenant
        written.records.update((kind, record_id) for record_id in record_ids)


async def wait_until_searchable(
    postgres: Postgres, written: WrittenRecords, timeout_seconds: float
) -> dict[str, int]:
    """Wait until search finds these records in every configured way; return what is pending, by stage.

    Nothing is pending if all was done in time. Only the generation that searches use counts. If what is
    left is dead, this doesn't wait for the time to run out; if Postgres is away, all of it is pending.
    """
    end, pause = time.monotonic() + timeout_seconds, _FIRST_PAUSE_SECONDS
    while written.records:
        try:
            pending, is_final = await _count_pending(postgres, written)
        except errors.Unavailable:
            pending, is_final = {NAMES["index"]: len(written.records)}, False
        remaining = end - time.monotonic()
        if is_final or remaining <= 0:
            return pending
        await asyncio.sleep(min(pause, remaining))
        pause = min(pause * 1.5, _MAX_PAUSE_SECONDS)
    return {}


async def _count_pending(postgres: Postgres, written: WrittenRecords) -> tuple[dict[str, int], bool]:
    """Return the number of jobs by stage, and whether it stays so: none is left, or those left are dead."""
    records = sorted(written.records)
    values = {
        "tenant": written.tenant,
        "kinds": [kind for kind, _ in records],
        "record_ids": [record_id for _, record_id in records],
    }
    async with postgres.for_tenant(written.tenant) as tx:
        rows = await tx.fetch(_COUNT_PENDING, values)
    return {NAMES[row["stage"]]: row["jobs"] for row in rows}, all(row["is_dead"] for row in rows)
