"""Lines are parsed beside the event loop, one portion at a time."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from shared.lifecycle.transfer.parsing_thread import in_thread

_WITHIN = 10.0


async def test_other_tasks_go_on_while_an_item_is_made() -> None:
    loop_went_on = threading.Event()

    def items() -> Iterator[bool]:
        for _ in range(2):
            yield loop_went_on.wait(_WITHIN)

    async def go_on() -> None:
        loop_went_on.set()

    other = asyncio.ensure_future(go_on())
    assert [item async for item in in_thread(items())] == [True, True]
    await other


async def test_an_error_ends_the_items() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        [item async for item in in_thread(items())]
