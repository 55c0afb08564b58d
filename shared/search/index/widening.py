"""Search until enough of the hits still count when their records are read.

Some conditions are known only to the record's own database: whether a point is outdated, whether the
session of a turn has expired, whether a key may see an entry. Applied to the best hits alone they could
leave nothing of a hundred, although others match. So the index is asked for more until enough hits count,
or it has no more.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from shared.foundation import errors
from shared.search.index.client import IndexHits, IndexQuery, SearchIndex
from shared.search.index.fallback import Row, RowHits, RowSource, search_or_fallback

MAX_HITS = 100_000
"""Hits of a channel at which a search stops to ask for more."""

Records = TypeVar("Records")
ReadHits = Callable[[IndexHits], Awaitable[tuple[Records, int]]]
"""Read the records of the hits found; return them, and how many of the hits count."""


async def search_until_enough(
    index: SearchIndex, query: IndexQuery, source: RowSource[Row], read: ReadHits[Records], wanted: int
) -> tuple[IndexHits, Records] | tuple[RowHits[Row], None]:
    """Return the hits of the index with what `read` returned for them, or rows while it is unavailable.

    `read` may take a channel out of `cut_channels` whose further hits would not count. Raises as
    `search_or_fallback` does.
    """
    found = await search_or_fallback(index, query, source)
    if isinstance(found, RowHits):
        return found, None
    records, count = await read(found)
    while found.cut_channels and count < wanted and found.limit < MAX_HITS:
        try:
            found = await index.widen(query, found)
        except errors.Unavailable as error:
            if error.dependency == "postgres":
                raise
            found.degraded = list(dict.fromkeys([*found.degraded, "index"]))
            break
        records, count = await read(found)
    return found, records
