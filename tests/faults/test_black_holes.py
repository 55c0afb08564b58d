"""A database that never answers costs one time-out, and then requests no longer wait for it."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx
import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation import config, errors
from shared.infra import postgres
from shared.infra.postgres import Postgres
from shared.infra.transaction import Connection
from tests.conftest import Gateway, Stores, running_gateway
from tests.faults.proxy import Mode, Proxy

FIRST_SECONDS = 3.0  # how long the first request may wait
NEXT_SECONDS = 0.9  # how long the next ones may wait: less than any time-out
SHORT_SECONDS = 0.3  # how long a question to Postgres may take that is short
# Of a process that nobody has configured; other tests have more time.
USUAL = {name: config.Settings.model_fields[name].default for name in ("redis_timeout", "qdrant_timeout")}

Make = Callable[..., config.Settings]


@pytest.fixture
async def qdrant_behind_proxy(
    make_settings: Make, stores: Stores, tenant: str
) -> AsyncIterator[tuple[Gateway, Proxy]]:
    with Proxy(stores.qdrant_url) as proxy:
        async with running_gateway(
            make_settings(**USUAL).model_copy(update={"qdrant_url": proxy.url}), tenant
        ) as gateway:
            await _begin(gateway)
            yield gateway, proxy
            proxy.mode = "pass"


@pytest.fixture
async def redis_behind_proxy(
    make_settings: Make, stores: Stores, tenant: str
) -> AsyncIterator[tuple[Gateway, Proxy]]:
    with Proxy(stores.redis_url) as proxy:
        settings = config.load(
            **make_settings(**USUAL).model_dump(exclude={"redis_url"}), redis_url=proxy.url
        )
        async with running_gateway(settings, tenant) as gateway:
            await _begin(gateway)
            yield gateway, proxy
            proxy.mode = "pass"


@pytest.fixture
async def postgres_behind_proxy(
    make_settings: Make, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Gateway, Proxy]]:
    for name in ("_SHORT_SECONDS", "_CONNECT_SECONDS"):
        monkeypatch.setattr(postgres, name, SHORT_SECONDS)
    settings = make_settings()
    with Proxy(config.require_setting(settings.postgres_url, "LOCI_POSTGRES_URL")) as proxy:
        through = config.load(**settings.model_dump(exclude={"postgres_url"}), postgres_url=proxy.url)
        async with running_gateway(through, tenant) as gateway:
            await _begin(gateway)
            yield gateway, proxy
            proxy.mode = "pass"


async def _begin(gateway: Gateway) -> None:
    saved = await gateway.client.post("/v1/memories", json={"content": "The ferry to Texel leaves at nine."})
    assert saved.status_code == 201
    assert (await gateway.client.post("/v1/sessions", json={"id": "s"})).status_code == 201
    assert (await _put(gateway)).status_code == 200


@pytest.mark.parametrize("mode", ["blackhole", "refuse", "reset"])
async def test_without_qdrant_saves_searches_and_contexts_respond_in_time(
    qdrant_behind_proxy: tuple[Gateway, Proxy], mode: Mode
) -> None:
    gateway, proxy = qdrant_behind_proxy
    proxy.mode = mode
    saved, first = await _timed(
        gateway.client.post("/v1/memories", json={"content": "The ferry to Vlieland leaves at ten."})
    )
    assert saved.status_code == 201
    assert first < FIRST_SECONDS
    for request in (_search, _context, _put):
        answer, seconds = await _timed(request(gateway))
        assert answer.status_code == 200, answer.text
        assert seconds < NEXT_SECONDS, request
    hits = (await _search(gateway)).json()
    assert (len(hits["results"]), hits["degraded"]) == (2, ["index"])
    context = (await _context(gateway)).json()
    assert len(context["recalled"]) == 0
    assert context["degraded"] == ["index"]
    assert "Texel" in context["messages"][0]["content"]


@pytest.mark.parametrize("mode", ["blackhole", "refuse", "reset"])
async def test_without_redis_only_the_working_memory_is_missing(
    redis_behind_proxy: tuple[Gateway, Proxy], mode: Mode
) -> None:
    gateway, proxy = redis_behind_proxy
    proxy.mode = mode
    saved, seconds = await _timed(
        gateway.client.post("/v1/memories", json={"content": "The ferry to Vlieland leaves at ten."})
    )
    assert (saved.status_code, seconds < NEXT_SECONDS) == (201, True), seconds
    searched, seconds = await _timed(_search(gateway))
    assert (len(searched.json()["results"]), searched.json()["degraded"], seconds < NEXT_SECONDS) == (
        2,
        [],
        True,
    ), seconds
    context, first = await _timed(_context(gateway))
    assert (context.status_code, context.json()["degraded"], first < FIRST_SECONDS) == (
        200,
        ["redis"],
        True,
    ), first
    for request in (_put, _get, _context):
        answer, seconds = await _timed(request(gateway))
        assert seconds < NEXT_SECONDS, (request, seconds)
        if request is not _context:
            assert answer.status_code == 503, answer.text
            assert answer.headers["content-type"] == "application/problem+json"
            assert int(answer.headers["retry-after"]) >= 1


@pytest.mark.parametrize("mode", ["blackhole", "refuse", "reset"])
async def test_redis_is_used_again_once_it_is_reachable(
    redis_behind_proxy: tuple[Gateway, Proxy], mode: Mode
) -> None:
    gateway, proxy = redis_behind_proxy
    proxy.mode = mode
    assert (await _get(gateway)).status_code == 503
    proxy.mode = "pass"
    restored_at = time.monotonic()
    while (answer := await _get(gateway)).status_code == 503:
        assert time.monotonic() - restored_at < FIRST_SECONDS
    assert answer.json()["value"] == "3 unread mails"
    assert (await _context(gateway)).json()["degraded"] == []


async def test_a_postgres_that_never_answers_is_unavailable_after_one_short_time(
    postgres_behind_proxy: tuple[Gateway, Proxy],
) -> None:
    gateway, proxy = postgres_behind_proxy
    proxy.mode = "blackhole"
    for request in (_search, _get, _context):
        answer, seconds = await _timed(request(gateway))
        assert (answer.status_code, seconds < FIRST_SECONDS) == (503, True), seconds
        assert int(answer.headers["retry-after"]) >= 1
    proxy.mode = "pass"
    assert (await _get(gateway)).json()["value"] == "3 unread mails"
    assert len((await _search(gateway)).json()["results"]) == 1


@pytest.mark.parametrize("opens", [lambda pool: pool.for_tenant("t"), lambda pool: pool.autocommit()])
async def test_an_open_connection_that_never_answers_is_dropped_after_one_short_time(
    postgres_behind_proxy: tuple[Gateway, Proxy],
    opens: Callable[[Postgres], AbstractAsyncContextManager[Connection]],
) -> None:
    gateway, proxy = postgres_behind_proxy
    pool = Postgres(gateway.resources.settings)

    async def ask() -> AsyncConnection:
        async with opens(pool) as opened:
            await opened.execute(select(1))
            return opened.connection

    open_connection = await ask()
    assert await ask() is open_connection
    proxy.mode = "blackhole"
    with pytest.raises(errors.Unavailable):
        await asyncio.wait_for(ask(), FIRST_SECONDS)
    assert open_connection.closed
    proxy.mode = "pass"
    await ask()
    await pool.close()


async def test_who_changes_the_generations_waits_for_as_long_as_a_transaction_takes(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_SHORT_SECONDS", SHORT_SECONDS)
    pool = gateway.resources.postgres

    async def change() -> None:
        async with pool.across_tenants(exclusive=True):
            pass

    async with pool.for_tenant(gateway.tenant):
        changing = asyncio.create_task(change())
        done, _ = await asyncio.wait([changing], timeout=3 * SHORT_SECONDS)
        assert not done
    await changing


async def _timed(request: Awaitable[httpx.Response]) -> tuple[httpx.Response, float]:
    started = time.monotonic()
    return await request, time.monotonic() - started


def _search(gateway: Gateway) -> Any:
    return gateway.client.post("/v1/memories/search", json={"query": "ferry"})


def _context(gateway: Gateway) -> Any:
    return gateway.client.post("/v1/sessions/s/context", json={"message": "When does the ferry leave?"})


def _put(gateway: Gateway) -> Any:
    return gateway.client.put("/v1/working/session/s/mails", json={"value": "3 unread mails"})


def _get(gateway: Gateway) -> Any:
    return gateway.client.get("/v1/working/session/s/mails")
