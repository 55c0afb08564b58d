"""Closed-loop load: each client sends its next request when it has the response to the last."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from statistics import quantiles


@dataclass(frozen=True, slots=True)
class Pace:
    """Times of all clients in milliseconds, requests per second, and the number of all requests sent."""

    p50: float
    p99: float
    rate: float
    requests: int


async def drive(clients: Sequence[Callable[[], Awaitable[object]]], seconds: float) -> Pace:
    """Let every client send requests for this many seconds, after an uncounted warm-up of a tenth of that."""
    times: list[float] = []
    sent = 0
    counted_from = time.perf_counter() + seconds / 10
    until = counted_from + seconds

    async def work(request: Callable[[], Awaitable[object]]) -> None:
        nonlocal sent
        while (started := time.perf_counter()) < until:
            await request()
            sent += 1
            if started >= counted_from:
                times.append((time.perf_counter() - started) * 1000)

    async with asyncio.TaskGroup() as working:
        for client in clients:
            working.create_task(work(client))
    cuts = quantiles(times, n=100)
    return Pace(cuts[49], cuts[98], len(times) / (time.perf_counter() - counted_from), sent)
