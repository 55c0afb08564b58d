"""How long what is written takes until it is found: a histogram that all processes add to.

Begins with the commit that made the row due (its transaction's time, by the database's clock), ends
with the confirmation that the point, or its vector, is written. A backfill is nobody's wait.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from shared.clients.postgres import Postgres
from shared.work import tallies

NAME = "searchable_seconds"
TOTAL = "searchable_seconds_sum"
BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 3600.0)
"""Upper ends of the buckets, in seconds; what took longer is in one more, `inf`."""
By = Literal["keyword", "vector"]


async def observe_time_to_searchable(postgres: Postgres, by: By, ages: Sequence[float]) -> None:
    """Add what is found from now on, so many seconds after it was written."""
    if ages:
        buckets = Counter(f"{by}:{_bound(age)}" for age in ages)
        await tallies.tell(postgres, {NAME: buckets, TOTAL: {by: sum(ages)}})


def _bound(age: float) -> float:
    return (*BOUNDS, float("inf"))[bisect_left(BOUNDS, age)]
