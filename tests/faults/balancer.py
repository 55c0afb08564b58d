"""A balancer as clients may have it: sends to gateways that say they are ready, each in its turn.

It retries only what was refused: a connection that nobody listens for has done nothing. Whatever else
goes wrong is the request's failure.
"""

import asyncio
from contextlib import suppress
from itertools import count
from types import TracebackType
from typing import Self

import httpx

_LOOK_EVERY = 0.1


class Balancer(httpx.AsyncBaseTransport):
    """A transport over the gateways at some ports of this machine."""

    def __init__(self) -> None:
        self.ready: set[int] = set()
        self._known: set[int] = set()
        self._turns = count()
        self._wire = httpx.AsyncHTTPTransport()
        self._looking: asyncio.Task[None] | None = None

    def add(self, port: int) -> None:
        """Ask a gateway from now on whether it is ready."""
        self._known.add(port)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send to the ready gateways in turn until one does not refuse."""
        last: httpx.ConnectError | None = None
        ports = sorted(self.ready)
        first = next(self._turns)
        for step in range(len(ports)):
            request.url = request.url.copy_with(port=ports[(first + step) % len(ports)])
            try:
                return await self._wire.handle_async_request(request)
            except httpx.ConnectError as refused:
                last = refused
        raise last or httpx.ConnectError("no gateway is ready")

    async def __aenter__(self) -> Self:
        await self._wire.__aenter__()
        self._looking = asyncio.create_task(self._look())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        if self._looking is not None:
            self._looking.cancel()
            with suppress(asyncio.CancelledError):
                await self._looking
        await self._wire.__aexit__(kind, error, trace)

    async def _look(self) -> None:
        async with httpx.AsyncClient(timeout=5, trust_env=False) as probe:
            while True:
                for port in sorted(self._known):
                    await self._ask(probe, port)
                await asyncio.sleep(_LOOK_EVERY)

    async def _ask(self, probe: httpx.AsyncClient, port: int) -> None:
        try:
            answer = await probe.get(f"http://127.0.0.1:{port}/readyz")
            ready = answer.is_success
        except httpx.TransportError:
            ready = False
        (self.ready.add if ready else self.ready.discard)(port)
