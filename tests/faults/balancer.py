"""A load balancer as clients may have one: it sends requests to the ready gateways in turn.

It repeats a request only if the connection was refused, because then nothing has happened. Any other
error fails the request.
"""

import asyncio
from contextlib import suppress
from itertools import count
from types import TracebackType
from typing import Self

import httpx

_CHECK_INTERVAL_SECONDS = 0.1


class Balancer(httpx.AsyncBaseTransport):
    """A transport to the gateways on ports of this machine."""

    def __init__(self) -> None:
        self.ready: set[int] = set()
        self._ports: set[int] = set()
        self._turns = count()
        self._transport = httpx.AsyncHTTPTransport()
        self._checking: asyncio.Task[None] | None = None

    def add(self, port: int) -> None:
        """Check from now on whether a gateway is ready."""
        self._ports.add(port)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send to the ready gateways in turn until one accepts the connection."""
        last: httpx.ConnectError | None = None
        ports = sorted(self.ready)
        first = next(self._turns)
        for step in range(len(ports)):
            request.url = request.url.copy_with(port=ports[(first + step) % len(ports)])
            try:
                return await self._transport.handle_async_request(request)
            except httpx.ConnectError as error:
                last = error
        raise last or httpx.ConnectError("no gateway is ready")

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        self._checking = asyncio.create_task(self._check_all())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        if self._checking is not None:
            self._checking.cancel()
            with suppress(asyncio.CancelledError):
                await self._checking
        await self._transport.__aexit__(kind, error, trace)

    async def _check_all(self) -> None:
        async with httpx.AsyncClient(timeout=5, trust_env=False) as probe:
            while True:
                for port in sorted(self._ports):
                    await self._check(probe, port)
                await asyncio.sleep(_CHECK_INTERVAL_SECONDS)

    async def _check(self, probe: httpx.AsyncClient, port: int) -> None:
        try:
            answer = await probe.get(f"http://127.0.0.1:{port}/readyz")
            ready = answer.is_success
        except httpx.TransportError:
            ready = False
        (self.ready.add if ready else self.ready.discard)(port)
