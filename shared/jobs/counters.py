"""Counters and gauges that every process shares and that outlive it, for `/metrics`."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Literal

from sqlalchemy import RowMapping, bindparam, delete, func, select, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.types import Double, Text

from shared.foundation import errors
from shared.infra.postgres import Postgres
from shared.jobs.table import fleet_counter


async def increment(connection: AsyncConnection, name: str, by: Mapping[str, float]) -> None:
    """Add to counters that every process shares; `by` maps a label to what to add."""
    added = {label: amount for label, amount in by.items() if amount}
    if added:
        values = {"name": name, "labels": list(added), "amounts": list(added.values())}
        await connection.execute(_COUNT, values)


# In one order everywhere: two transactions over the same counters must not wait for each other.
_COUNT = text(
    """
    INSERT INTO fleet_counter (name, labels, value)
    SELECT :name, a.labels, a.amount FROM unnest(:labels, :amounts) AS a (labels, amount) ORDER BY a.labels
    ON CONFLICT (name, labels) DO UPDATE SET value = fleet_counter.value + excluded.value
    """
).bindparams(bindparam("labels", type_=ARRAY(Text)), bindparam("amounts", type_=ARRAY(Double)))


async def increment_detached(postgres: Postgres, added: Mapping[str, Mapping[str, float]]) -> None:
    """Count in a transaction of its own, for figures that nothing hangs on; at once or not at all.

    The counters are few and everybody's: a process that froze while it held one would else hold up
    the work of all others.
    """
    with suppress(errors.Unavailable):
        async with postgres.across_tenants() as connection:
            await connection.execute(select(func.set_config("lock_timeout", "500ms", True)))
            for name, by in sorted(added.items()):
                await increment(connection, name, by)


async def set_gauge(connection: AsyncConnection, name: str, labels: str, value: float) -> None:
    """Set a gauge that every process shares."""
    await connection.execute(_PUT, {"name": name, "labels": labels, "value": value})


_PUT = text(
    "INSERT INTO fleet_counter (name, labels, value) VALUES (:name, :labels, :value)"
    " ON CONFLICT (name, labels) DO UPDATE SET value = excluded.value"
)


async def delete_counter(connection: AsyncConnection, name: str, labels: Sequence[str]) -> None:
    """Take gauges away whose thing is gone."""
    await connection.execute(
        delete(fleet_counter).where(fleet_counter.c.name == name, fleet_counter.c.labels.in_(labels))
    )


async def read_all(connection: AsyncConnection) -> list[RowMapping]:
    """Return every shared counter as {name, labels, value}."""
    return list(
        (
            await connection.execute(
                select(fleet_counter).order_by(fleet_counter.c.name, fleet_counter.c.labels)
            )
        ).mappings()
    )


TIME_TO_SEARCHABLE = "time_to_searchable_seconds"
TOTAL = "time_to_searchable_seconds_sum"
BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 3600.0)
"""Upper ends of the buckets, in seconds; what took longer is in one more, `inf`."""
Channel = Literal["keyword", "vector"]


async def observe_time_to_searchable(postgres: Postgres, by: Channel, ages: Sequence[float]) -> None:
    """Add what is found from now on, so many seconds after it was written."""
    if ages:
        buckets = Counter(f"{by}:{_bound(age)}" for age in ages)
        await increment_detached(postgres, {TIME_TO_SEARCHABLE: buckets, TOTAL: {by: sum(ages)}})


def _bound(age: float) -> float:
    return (*BOUNDS, float("inf"))[bisect_left(BOUNDS, age)]
