"""Measure what the databases alone need for a context: the same reads, sent by the drivers alone.

A few calls are made in this process and what they send is recorded: the look-up of the API key, each
transaction on Postgres with its statements and values, and the request to Qdrant. Then the same is
sent again with asyncpg, redis-py and a socket, each client with connections of its own. So there is no
HTTP gateway, SQLAlchemy, parsing or ranking. The conversation window and the working memory are read
by one Redis pipeline.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import asyncpg
import httpx
import redis.asyncio
from sqlalchemy import event

from benchmarks.raw_http import Connection
from shared.context import build
from shared.context.types import Request
from shared.conversation.turns import window
from shared.foundation import config
from shared.memory.working import scripts
from shared.platform.auth import api_keys
from shared.platform.resources import Resources, open_resources

Statement = tuple[str, tuple[Any, ...]]


@dataclass(slots=True)
class Call:
    """The reads of one call: transactions before the search, the search, and transactions after it."""

    before: list[list[Statement]] = field(default_factory=list)
    search: tuple[str, bytes] = ("", b"")
    after: list[list[Statement]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Baseline:
    """Recorded calls, to be sent again."""

    settings: config.Settings
    calls: Sequence[Call]
    working_keys: Sequence[str]

    @asynccontextmanager
    async def clients(self, count: int) -> AsyncIterator[list[Callable[[], Awaitable[object]]]]:
        """Open connections for `count` clients, each of which sends one call after the other."""
        all_drivers = [await _Drivers.open(self.settings) for _ in range(count)]
        try:
            yield [self._client(drivers, start) for start, drivers in enumerate(all_drivers)]
        finally:
            for drivers in all_drivers:
                await drivers.close()

    def _client(self, drivers: "_Drivers", start: int) -> Callable[[], Awaitable[object]]:
        # The clients start at different calls. Otherwise the databases would read from their caches only.
        calls = itertools.islice(itertools.cycle(self.calls), start * 7, None)
        return lambda: drivers.run(next(calls), self.working_keys)


@dataclass(frozen=True, slots=True)
class _Drivers:
    postgres: asyncpg.Connection
    redis: redis.asyncio.Redis
    qdrant: Connection

    @classmethod
    async def open(cls, settings: config.Settings) -> "_Drivers":
        role = {"role": settings.postgres_role}
        address = config.require_setting(settings.postgres_url, "LOCI_POSTGRES_URL")
        return cls(
            await asyncpg.connect(address, server_settings=role),
            redis.asyncio.from_url(
                config.require_setting(settings.redis_url, "LOCI_REDIS_URL"), decode_responses=True
            ),
            Connection(config.require_setting(settings.qdrant_url, "LOCI_QDRANT_URL")),
        )

    async def run(self, call: Call, working_keys: Sequence[str]) -> None:
        await self._transact(call.before)
        await asyncio.gather(self._read_redis(working_keys), self._search(call))

    async def _search(self, call: Call) -> None:
        path, body = call.search
        await self.qdrant.exchange("POST", path, body)
        await self._transact(call.after)

    async def _transact(self, transactions: Sequence[Sequence[Statement]]) -> None:
        for statements in transactions:
            async with self.postgres.transaction():
                for sql, values in statements:
                    await self.postgres.fetch(sql, *values)

    async def _read_redis(self, working_keys: Sequence[str]) -> None:
        turns, expiry, meta, names, until = working_keys
        async with self.redis.pipeline(transaction=False) as pipe:
            pipe.zrange(turns, -20, -1)
            pipe.eval(scripts.READ, 2, expiry, meta)
            for wide in ("patrol", "subagent"):
                pipe.eval(scripts.LIST_NAMESPACES, 2, names, until, wide)
            await pipe.execute()

    async def close(self) -> None:
        await self.postgres.close()
        await self.redis.aclose()
        await self.qdrant.close()


async def record_calls(
    settings: config.Settings, key: str, session_id: str, messages: Sequence[str]
) -> Baseline:
    """Make context calls in this process, without saving turns, and record what they read."""
    async with open_resources(settings) as resources:
        caller = await api_keys.authenticate(resources.postgres, key)
        await build.build_context(resources, caller, session_id, Request(messages[0], record_turn=False))
        calls = []
        for message in messages:
            with _recording(resources) as call:
                caller = await api_keys.authenticate(resources.postgres, key)
                await build.build_context(resources, caller, session_id, Request(message, record_turn=False))
            calls.append(call)
        return Baseline(settings, calls, _redis_keys(resources, caller.tenant, session_id))


def _redis_keys(resources: Resources, tenant: str, session_id: str) -> list[str]:
    prefix = resources.settings.prefix
    own, shared = f"{prefix}:working:{{{tenant}:session/{session_id}}}", f"{prefix}:working:{{{tenant}}}"
    turns = window.key(resources, tenant, session_id)
    return [turns, f"{own}:expiry", f"{own}:meta", f"{shared}:names", f"{shared}:until"]


@contextmanager
def _recording(resources: Resources) -> Iterator[Call]:
    call, transactions = Call(), dict[int, list[Statement]]()
    engine = resources.postgres.engine.sync_engine

    def on_begin(connection: Any) -> None:
        transactions[id(connection)] = []
        (call.after if call.search[1] else call.before).append(transactions[id(connection)])

    def on_execute(connection: Any, _cursor: Any, sql: str, values: Any, *_: Any) -> None:
        transactions[id(connection)].append((sql, tuple(values)))

    async def on_request(request: httpx.Request) -> None:
        call.search = (request.url.raw_path.decode(), request.content)

    hooks = resources.qdrant.client.http.client._async_client.event_hooks["request"]  # noqa: SLF001
    hooks.append(on_request)
    event.listen(engine, "begin", on_begin)
    event.listen(engine, "before_cursor_execute", on_execute)
    try:
        yield call
    finally:
        event.remove(engine, "begin", on_begin)
        event.remove(engine, "before_cursor_execute", on_execute)
        hooks.remove(on_request)
