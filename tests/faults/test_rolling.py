"""A rolling upgrade under load: no request fails, no job runs twice, nothing is lost."""

import asyncio
import json
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable

import httpx
import pytest

from services.local import ports
from tests.faults.balancer import Balancer
from tests.faults.history import History, RunFigures, eventually, split_in_two
from tests.faults.processes import Fleet
from tests.process_pool import Program
from tests.standins.behaviours import Hang, Reply, Slow
from tests.standins.models import ModelServer

GRACE = 30.0  # seconds from SIGTERM to the end


@pytest.mark.parametrize("rounds", [1, pytest.param(20, marks=pytest.mark.long)])
async def test_gateways_and_workers_roll_under_load_and_no_client_notices(
    make_fleet: Callable[..., Fleet],
    tenant: str,
    models: ModelServer,
    report: Callable[[RunFigures], None],
    rounds: int,
) -> None:
    models.chat_default = Slow(0.2, Reply(split_in_two))
    fleet = make_fleet(
        llm_base_url=models.url,
        llm_model="m",
        llm_timeout=20,
        job_lease=60,
        gateway_drain=1,
        worker_shutdown_grace=15,
    )
    fleet.start("beat")
    balancer = Balancer()
    headers = {"authorization": f"Bearer {await fleet.key(tenant)}"}
    async with httpx.AsyncClient(
        transport=balancer, base_url="http://127.0.0.1", headers=headers, timeout=20
    ) as client:
        history = History(client)
        gateways = [await _start_gateway(fleet, balancer) for _ in range(2)]
        workers = [fleet.start("work") for _ in range(2)]
        async with history.agents(2):
            for _ in range(rounds):
                for position in range(2):
                    gateways[position] = await _replace(
                        gateways[position], await _start_gateway(fleet, balancer)
                    )
                    workers[position] = await _replace(workers[position], fleet.start("work"))
                    await history.more(5, 10)
        await history.quiet(within=120)
        figures = await history.check("rolled out under load", rounds * 4, searches=50)
    assert figures.retried == 0, f"seed {history.seed}: {figures}\n{fleet.log[-2000:]}"
    calls = Counter(json.loads(call.body["messages"][-1]["content"])["content"] for call in models.chat_calls)
    assert set(calls.values()) == {1}, {text: times for text, times in calls.items() if times > 1}
    assert set(calls) == {save.content for save in history.saves}
    report(figures)


async def _start_gateway(fleet: Fleet, balancer: Balancer) -> Program:
    port = ports.pick_free_port()
    gateway = fleet.start("serve", port=port)
    balancer.add(port)

    async def ready() -> bool:
        return port in balancer.ready

    await eventually(ready, 30, "a gateway that is ready")
    return gateway


async def _replace(old: Program, following: Program) -> Program:
    """End the old process once the new one has started, as a rolling upgrade does."""
    old.signal(signal.SIGTERM)
    assert await asyncio.to_thread(old.ended, GRACE)
    assert old.code in (0, -signal.SIGTERM)
    return following


async def test_a_stopping_gateway_reports_draining_and_still_completes_requests(
    make_fleet: Callable[..., Fleet], tenant: str, models: ModelServer
) -> None:
    """The running request is a search that waits for the embedding of its query."""
    fleet = make_fleet(
        embedding_base_url=models.url,
        embedding_model="m",
        embedding_dimension=64,
        query_embedding_timeout=15,
        gateway_drain=2,
    )
    gateway = fleet.serve()
    slow = Hang()
    models.embedding_replies.append(slow)
    async with await fleet.client(tenant) as client:
        running = asyncio.create_task(client.post("/v1/memories/search", json={"query": "lamps"}))
        await asyncio.to_thread(models.wait_for_calls, 1, 20)
        gateway.signal(signal.SIGTERM)

        async def draining() -> bool:
            return bool((await client.get("/readyz")).json()["status"] == "draining")

        await eventually(draining, 2, "draining")
        unready = await client.get("/readyz")
        saved = await client.post("/v1/memories", json={"content": "Saved while it drains."})
        await asyncio.to_thread(_wait_until_refused, fleet)
        assert gateway.code is None
        slow.release.set()
        response = await running
    assert (unready.status_code, unready.headers["connection"]) == (503, "close")
    assert (saved.status_code, saved.headers["connection"]) == (201, "close")
    assert response.status_code == 200
    assert response.json()["degraded"] == []
    assert await asyncio.to_thread(gateway.ended, GRACE)


def _wait_until_refused(fleet: Fleet) -> None:
    """Wait until the gateway accepts no new connection."""
    address = ("127.0.0.1", int(fleet.url.rsplit(":", 1)[1]))
    deadline = time.monotonic() + GRACE
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(address, timeout=5):
                pass
        except ConnectionRefusedError:
            return
    raise AssertionError("the gateway still accepts connections")
