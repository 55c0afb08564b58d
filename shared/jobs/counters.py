"""Fleet counters: figures for `/metrics` that all processes share and that outlive each of them.

They are kept in Postgres, so that any gateway can report them for the whole fleet. Counters of an
outcome are incremented in the transaction that records it. Figures that no outcome depends on are
incremented in a transaction of their own, and may be lost. A worker gathers them for a second.
"""

import asyncio
from bisect import bisect_left
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Literal
from weakref import WeakKeyDictionary

from sqlalchemy import RowMapping, bindparam, delete, select, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import Double, Text

from shared.foundation import errors
from shared.infra.postgres import Postgres
from shared.infra.transaction import Connection, FleetTransaction, Transaction
from shared.jobs.table import fleet_counter

Channel = Literal["keyword", "vector"]
TIME_TO_SEARCHABLE = "time_to_searchable_seconds"
TIME_TO_SEARCHABLE_SUM = "time_to_searchable_seconds_sum"
BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 3600.0)
"""Upper bounds of the histogram's buckets in seconds. Longer times are counted in the bucket `inf`."""

# Rows are locked in one order everywhere, so that two transactions cannot block each other for ever.
_INCREMENT = text(
    """
    INSERT INTO fleet_counter (name, labels, value)
    SELECT :name, a.labels, a.amount FROM unnest(:labels, :amounts) AS a (labels, amount) ORDER BY a.labels
    ON CONFLICT (name, labels) DO UPDATE SET value = fleet_counter.value + excluded.value
    """
).bindparams(bindparam("labels", type_=ARRAY(Text)), bindparam("amounts", type_=ARRAY(Double)))
_SET = text(
    "INSERT INTO fleet_counter (name, labels, value) VALUES (:name, :labels, :value)"
    " ON CONFLICT (name, labels) DO UPDATE SET value = excluded.value"
)


_LIMIT_LOCKS = text("SELECT set_config('lock_timeout', '500ms', true)")
_GATHER_SECONDS = 1.0
_Sums = dict[str, dict[str, float]]  # by the counter's name and the label values
_gathered: WeakKeyDictionary[Postgres, _Sums] = WeakKeyDictionary()


async def increment(tx: Connection, name: str, amounts: Mapping[str, float]) -> None:
    """Add to a counter in the caller's transaction; `amounts` maps label values to what is added."""
    non_zero = {labels: amount for labels, amount in amounts.items() if amount}
    if non_zero:
        values = {"name": name, "labels": list(non_zero), "amounts": list(non_zero.values())}
        await tx.fetch(_INCREMENT, values)


async def increment_detached(postgres: Postgres, counters: Mapping[str, Mapping[str, float]]) -> None:
    """Add to counters by name in a transaction of their own; give up if Postgres or a lock is busy.

    All processes update the same few rows. A process that froze while it held a lock on one of them
    would otherwise block the work of all others.
    """
    sums = _gathered.get(postgres)
    if sums is None:
        await _write(postgres, counters)
        return
    for name, amounts in counters.items():
        sums_of_name = sums.setdefault(name, {})
        for labels, amount in amounts.items():
            sums_of_name[labels] = sums_of_name.get(labels, 0) + amount


@asynccontextmanager
async def gather_detached(postgres: Postgres) -> AsyncIterator[None]:
    """Gather detached increments during a block; write their sums once a second, and at its end.

    A worker counts several times per job, and a transaction for each would cost as much as the job. A process
    that is killed loses what it has gathered.
    """
    _gathered[postgres] = {}
    end = asyncio.Event()
    writer = asyncio.create_task(_write_until(end, postgres))
    try:
        yield
    finally:
        end.set()
        await writer
        del _gathered[postgres]


async def _write_until(end: asyncio.Event, postgres: Postgres) -> None:
    while not end.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(end.wait(), _GATHER_SECONDS)
        sums, _gathered[postgres] = _gathered[postgres], {}
        if sums:
            await _write(postgres, sums)


async def _write(postgres: Postgres, counters: Mapping[str, Mapping[str, float]]) -> None:
    with suppress(errors.Unavailable):
        async with postgres.across_tenants() as tx:
            await tx.fetch(_LIMIT_LOCKS)
            for name, amounts in sorted(counters.items()):
                await increment(tx, name, amounts)


async def observe_time_to_searchable(postgres: Postgres, channel: Channel, ages: Sequence[float]) -> None:
    """Record that records became searchable in a channel; `ages` are the seconds since they were saved."""
    if ages:
        buckets = Counter(f"{channel}:{_upper_bound(age)}" for age in ages)
        await increment_detached(
            postgres, {TIME_TO_SEARCHABLE: buckets, TIME_TO_SEARCHABLE_SUM: {channel: sum(ages)}}
        )


async def set_gauge(tx: Transaction, name: str, labels: str, value: float) -> None:
    """Set a gauge to a value."""
    await tx.execute(_SET, {"name": name, "labels": labels, "value": value})


async def delete_counter(tx: Transaction, name: str, labels: Sequence[str]) -> None:
    """Delete a counter or gauge for label values that no longer exist."""
    await tx.execute(
        delete(fleet_counter).where(fleet_counter.c.name == name, fleet_counter.c.labels.in_(labels))
    )


async def read_all(tx: FleetTransaction) -> list[RowMapping]:
    """Return every fleet counter as {name, labels, value}."""
    statement = select(fleet_counter).order_by(fleet_counter.c.name, fleet_counter.c.labels)
    return list((await tx.execute(statement)).mappings())


def _upper_bound(age: float) -> float:
    return (*BOUNDS, float("inf"))[bisect_left(BOUNDS, age)]
