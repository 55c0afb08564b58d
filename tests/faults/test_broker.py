"""The broker holds only wake-ups: when it is emptied, jobs are delayed and none is lost."""

from collections.abc import Callable
from typing import Any

import pytest
import redis.asyncio

from tests.faults.history import History, RunFigures, eventually
from tests.faults.processes import Fleet
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer


@pytest.mark.parametrize("jobs", [300, pytest.param(1000, marks=pytest.mark.long)])
async def test_a_broker_flushed_with_jobs_pending_delays_them_and_loses_none(
    make_fleet: Callable[..., Fleet],
    remember: Callable[..., Any],
    models: ModelServer,
    report: Callable[[RunFigures], None],
    jobs: int,
) -> None:
    """Two beats run at once, because more wake-ups than needed do no harm."""
    models.chat_default = Reply("[]")
    fleet = make_fleet(llm_base_url=models.url, llm_model="m")
    fleet.serve()
    history: History = await remember(fleet)
    await history.save_batch(jobs)
    await _flush(fleet)
    for role in ("work", "beat", "beat"):
        fleet.start(role)
    for remaining in (jobs * 2 // 3, jobs // 3):
        await _enriched_down_to(history, remaining)
        await _flush(fleet)
    await history.quiet(within=120)
    assert len(models.chat_calls) == jobs, f"seed {history.seed}"
    assert {memory["state"] for memory in await history.listed()} == {"kept-raw"}
    report(await history.check(f"broker flushed with {jobs} jobs pending", 3))


async def _flush(fleet: Fleet) -> None:
    async with redis.asyncio.from_url(fleet.settings.broker_address) as broker:
        await broker.flushdb()


async def _enriched_down_to(history: History, remaining: int) -> None:
    async def done() -> bool:
        return int((await history.status())["pending"]["enrichment"]) <= remaining

    await eventually(done, 120, f"seed {history.seed}: {remaining} jobs left")
