"""Parse the lines of an import in a thread, so that other requests go on meanwhile.

A hundred thousand malformed lines take seconds, and none of them is waited for by itself.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")
_END = object()


async def in_thread(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield items, each of which a thread takes from the iterable. At most one thread does at a time."""
    iterator = iter(items)
    while (item := await asyncio.to_thread(next, iterator, _END)) is not _END:
        yield item  # type: ignore[misc]  # it is not the end
