"""Enrichment workers are killed at any moment: no memory is lost, and none is enriched twice."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.history import History, RunFigures, split_in_two
from tests.faults.processes import Fleet
from tests.standins.behaviours import Reply, Slow
from tests.standins.models import ModelServer
from tests.standins.wire import CHAT

ATTEMPTS = 1000
COST = 4 * 2  # calls that a kill may waste: two slots, and the replies that are being stored at that moment


@pytest.mark.parametrize("kills", [5, pytest.param(200, marks=pytest.mark.long)])
async def test_workers_killed_mid_call_lose_nothing_and_enrich_each_memory_once(
    make_fleet: Callable[..., Fleet],
    remember: Callable[..., Any],
    models: ModelServer,
    report: Callable[[RunFigures], None],
    kills: int,
) -> None:
    models.chat_default = Slow(0.1, Reply(split_in_two))
    fleet = make_fleet(
        llm_base_url=models.url, llm_model="m", llm_concurrency=2, job_lease=2, job_max_attempts=ATTEMPTS
    )
    fleet.serve()
    fleet.start("beat")
    history: History = await remember(fleet)
    for _ in range(max(1, kills // 10)):
        await history.save_batch(70)
    saves = len(history.saves)
    for _ in range(kills):
        worker, seen = fleet.start("work"), len(models.chat_calls)
        await asyncio.to_thread(models.wait_for_calls, seen + history.random.randint(1, 12), 30, CHAT)
        worker.kill()
    killed_while_working = (await history.status())["pending"]["enrichment"] > 0
    fleet.start("work")
    await history.quiet(within=120)
    report(await history.check(f"worker killed mid-call ({saves} memories)", kills))
    assert killed_while_working, f"seed {history.seed}: the last kills happened without pending jobs"
    applied = [await _times(history, save.id, "archived") for save in history.acknowledged]
    assert applied == [1] * saves, f"seed {history.seed}"
    assert saves <= len(models.chat_calls) <= saves + kills * COST


async def _times(history: History, entry_id: str, what: str) -> int:
    answer = await history.client.get(f"/v1/memories/{entry_id}/history")
    return Counter(note["action"] for note in answer.json()["results"])[what]
