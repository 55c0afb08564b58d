"""A store that swallows everything costs one time-out and then little: no request waits long (F5, F7)."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest

from shared.foundation import config
from tests.conftest import Gateway, Stores, serving
from tests.faults.proxy import Mode, Proxy

MOST = 3.0  # seconds that the first request waits
FEW = 0.9  # seconds that the next ones wait: less than any time-out

Make = Callable[..., config.Settings]


@pytest.fixture
async def qdrant_away(
    make_settings: Make, stores: Stores, tenant: str
) -> AsyncIterator[tuple[Gateway, Proxy]]:
    with Proxy(stores.qdrant_url) as proxy:
        async with serving(make_settings().model_copy(update={"qdrant_url": proxy.url}), tenant) as gateway:
            await _begin(gateway)
            yield gateway, proxy
            proxy.mode = "pass"


@pytest.fixture
async def redis_away(
    make_settings: Make, stores: Stores, tenant: str
) -> AsyncIterator[tuple[Gateway, Proxy]]:
    with Proxy(stores.redis_url) as proxy:
        settings = config.load(**make_settings().model_dump(exclude={"redis_url"}), redis_url=proxy.url)
        async with serving(settings, tenant) as gateway:
            await _begin(gateway)
            yield gateway, proxy
            proxy.mode = "pass"


async def _begin(gateway: Gateway) -> None:
    saved = await gateway.client.post("/v1/memories", json={"content": "The ferry to Texel leaves at nine."})
    assert saved.status_code == 201
    assert (await gateway.client.post("/v1/sessions", json={"id": "s"})).status_code == 201
    assert (await _put(gateway)).status_code == 200


@pytest.mark.parametrize("mode", ["blackhole", "refuse", "reset"])
async def test_without_qdrant_saves_searches_and_contexts_answer_in_time(
    qdrant_away: tuple[Gateway, Proxy], mode: Mode
) -> None:
    gateway, proxy = qdrant_away
    proxy.mode = mode
    saved, first = await _timed(
        gateway.client.post("/v1/memories", json={"content": "The ferry to Vlieland leaves at ten."})
    )
    assert saved.status_code == 201
    assert first < MOST
    for ask in (_search, _context, _put):
        answer, seconds = await _timed(ask(gateway))
        assert answer.status_code == 200, answer.text
        assert seconds < FEW, ask
    found = (await _search(gateway)).json()
    assert (len(found["results"]), found["degraded"]) == (2, ["index"])
    context = (await _context(gateway)).json()
    assert len(context["recalled"]) == 0
    assert context["degraded"] == ["index"]
    assert "Texel" in context["messages"][0]["content"]


@pytest.mark.parametrize("mode", ["blackhole", "refuse", "reset"])
async def test_without_redis_only_the_desk_is_missing(redis_away: tuple[Gateway, Proxy], mode: Mode) -> None:
    gateway, proxy = redis_away
    proxy.mode = mode
    saved, seconds = await _timed(
        gateway.client.post("/v1/memories", json={"content": "The ferry to Vlieland leaves at ten."})
    )
    assert (saved.status_code, seconds < FEW) == (201, True), seconds
    found, seconds = await _timed(_search(gateway))
    assert (len(found.json()["results"]), found.json()["degraded"], seconds < FEW) == (2, [], True), seconds
    context, first = await _timed(_context(gateway))
    assert (context.status_code, context.json()["degraded"], first < MOST) == (200, ["redis"], True), first
    for ask in (_put, _get, _context):
        answer, seconds = await _timed(ask(gateway))
        assert seconds < FEW, (ask, seconds)
        if ask is not _context:
            assert answer.status_code == 503, answer.text
            assert answer.headers["content-type"] == "application/problem+json"
            assert int(answer.headers["retry-after"]) >= 1


@pytest.mark.parametrize("mode", ["blackhole", "refuse", "reset"])
async def test_redis_is_used_again_when_it_is_back(redis_away: tuple[Gateway, Proxy], mode: Mode) -> None:
    gateway, proxy = redis_away
    proxy.mode = mode
    assert (await _get(gateway)).status_code == 503
    proxy.mode = "pass"
    back = time.monotonic()
    while (answer := await _get(gateway)).status_code == 503:
        assert time.monotonic() - back < MOST
    assert answer.json()["value"] == "3 unread mails"
    assert (await _context(gateway)).json()["degraded"] == []


async def _timed(asking: Awaitable[httpx.Response]) -> tuple[httpx.Response, float]:
    started = time.monotonic()
    return await asking, time.monotonic() - started


def _search(gateway: Gateway) -> Any:
    return gateway.client.post("/v1/memories/search", json={"query": "ferry"})


def _context(gateway: Gateway) -> Any:
    return gateway.client.post("/v1/sessions/s/context", json={"message": "When does the ferry leave?"})


def _put(gateway: Gateway) -> Any:
    return gateway.client.put("/v1/working/session/s/mails", json={"value": "3 unread mails"})


def _get(gateway: Gateway) -> Any:
    return gateway.client.get("/v1/working/session/s/mails")
