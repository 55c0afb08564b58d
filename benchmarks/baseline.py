"""Measure what the databases alone need for a context: the same reads, sent by the drivers alone.

`floor.json` holds the reads of one call as the code sent them before it was made fast, so that the measure
stays the same: the look-up of the API key, each transaction on Postgres with its statements and values,
and the request to Qdrant. They are sent with asyncpg, redis-py and a socket, each client with connections
of its own. So there is no HTTP gateway, SQLAlchemy, parsing or ranking. The conversation window and the
working memory are read by one Redis pipeline.

A name such as `$tenant` in the file stands for what differs from call to call.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
import orjson
import redis.asyncio

from benchmarks.raw_http import Connection
from shared.conversation.turns import window
from shared.foundation import config
from shared.memory.working import scripts
from shared.platform.resources import open_resources
from shared.search.text import bm25

Names = Mapping[str, Any]
_TENANT = "default"  # that of `loci up`
_CALL = json.loads((Path(__file__).parent / "floor.json").read_text())
_HITS_WITH_NEIGHBOURS = 20


@dataclass(frozen=True, slots=True)
class Baseline:
    """Calls with their values by name, to be sent again and again."""

    settings: config.Settings
    calls: Sequence[Names]
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

    async def run(self, names: Names, working_keys: Sequence[str]) -> None:
        await self._transact(_CALL["before"], names)
        await asyncio.gather(self._read_redis(working_keys), self._search_and_read(names))

    async def _search_and_read(self, names: Names) -> None:
        await self.search(names)
        await self._transact(_CALL["after"], names)

    async def search(self, names: Names) -> list[dict[str, Any]]:
        """Return the points of the first channel."""
        path, body = _CALL["search"]["path"], orjson.dumps(_filled(_CALL["search"]["body"], names))
        return list(orjson.loads(await self.qdrant.exchange("POST", path, body))["result"][0]["points"])

    async def _transact(self, transactions: Sequence[Any], names: Names) -> None:
        for statements in transactions:
            async with self.postgres.transaction():
                for sql, values in statements:
                    await self.postgres.fetch(sql, *_filled(values, names))

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


def _filled(value: Any, names: Names) -> Any:
    """Return a value with what the names stand for."""
    if isinstance(value, dict):
        return {key: _filled(part, names) for key, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, names) for part in value]
    if isinstance(value, str) and value.startswith("$"):
        return datetime.now(UTC).isoformat() if value == "$since" else names[value[1:]]
    return value


async def prepare_calls(
    settings: config.Settings, key: str, session_id: str, messages: Sequence[str]
) -> Baseline:
    """Search once with each message to learn which rows its context reads, and return the calls."""
    drivers = await _Drivers.open(settings)
    try:
        calls = [await _names(drivers, key, session_id, message) for message in messages]
    finally:
        await drivers.close()
    async with open_resources(settings) as resources:
        prefix = resources.settings.prefix
        turns = window.key(resources, _TENANT, session_id)
    own = f"{prefix}:working:{{{_TENANT}:session/{session_id}}}"
    shared = f"{prefix}:working:{{{_TENANT}}}"
    keys = [turns, f"{own}:expiry", f"{own}:meta", f"{shared}:names", f"{shared}:until"]
    return Baseline(settings, calls, keys)


async def _names(drivers: _Drivers, key: str, session_id: str, message: str) -> Names:
    terms = bm25.query_vector(message)
    names = {
        "key_id": key.split("_")[1],
        "tenant": _TENANT,
        "session": session_id,
        "namespaces": [f"session/{session_id}"],
        "terms": {"indices": list(terms.indices), "values": list(terms.values)},
    }
    ids = [point["payload"]["record_id"] for point in await drivers.search(names)]
    async with drivers.postgres.transaction():
        await drivers.postgres.execute("SELECT set_config('loci.tenant', $1, true)", _TENANT)
        rows = await drivers.postgres.fetch(
            "SELECT source_session_id, source_seq FROM memory WHERE tenant = $1 AND id = ANY ($2::text[])",
            _TENANT,
            ids[:_HITS_WITH_NEIGHBOURS],
        )
    turns = [(session, seq + step) for session, seq in rows if session for step in (-1, 1)]
    return names | {
        "memory_ids": ids,
        "sessions": [session for session, _ in turns],
        "seqs": [seq for _, seq in turns],
    }
