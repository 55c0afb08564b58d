"""Postgres crashes: no save is acknowledged without a commit, and errors say when to try again."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.conftest import FaultEnvironment
from tests.faults.history import History, RunFigures
from tests.faults.processes import Fleet

FIRST_SUCCESS = 3.0  # seconds after Postgres is available again


@pytest.mark.parametrize("crashes", [3, pytest.param(30, marks=pytest.mark.long)])
async def test_a_postgres_crash_acknowledges_nothing_that_was_not_committed(
    make_fleet: Callable[..., Fleet],
    environment: FaultEnvironment,
    remember: Callable[..., Any],
    report: Callable[[RunFigures], None],
    crashes: int,
) -> None:
    fleet = make_fleet()
    for role in ("work", "beat"):
        fleet.start(role)
    gateway = fleet.serve()
    history: History = await remember(fleet)
    async with history.agents(4):
        for _ in range(crashes):
            await history.more(5, 25)
            with environment.without(environment.postgres):
                await _check_retry_after(history)
            restarted_at = time.monotonic()
            await history.save(within=FIRST_SUCCESS)
            assert time.monotonic() - restarted_at <= FIRST_SUCCESS, f"seed {history.seed}"
    await history.quiet(within=60)
    report(await history.check("Postgres crashed mid-save", crashes))
    assert gateway.code is None


async def _check_retry_after(history: History) -> None:
    for method, path, body in (
        ("POST", "/v1/memories", {"content": "not now"}),
        ("POST", "/v1/memories/search", {"query": "lamp"}),
        ("GET", "/v1/status", None),
    ):
        answer = await history.client.request(method, path, json=body)
        assert answer.status_code == 503, (path, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
        assert int(answer.headers["retry-after"]) >= 1
    assert (await history.client.get("/readyz")).status_code == 503
    assert (await history.client.get("/healthz")).status_code == 200
