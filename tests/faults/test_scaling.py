"""Workers start and stop under a backlog: throughput follows, and no job is lost or run twice.

The long form, with figures, is `make scale`.
"""

import asyncio
import json
import signal
from collections import Counter
from collections.abc import Callable
from statistics import linear_regression
from typing import Any

from tests.faults.history import History, RunFigures, eventually, split_in_two
from tests.faults.processes import Fleet
from tests.standins.behaviours import Hang, Reply, Slow
from tests.standins.models import ModelServer
from tests.standins.wire import CHAT, Call

MEMORIES, ALONE, TOGETHER = 70, 20, 55
SLOTS = 2  # calls at once of one worker
SECONDS = 0.5
PATIENT = {"llm_timeout": 30, "job_lease": 120}
"""The values of production, so that a busy machine does not cause retries."""


async def test_two_workers_enrich_faster_than_one_and_each_memory_once(
    make_fleet: Callable[..., Fleet],
    remember: Callable[..., Any],
    models: ModelServer,
    report: Callable[[RunFigures], None],
) -> None:
    models.chat_default = Slow(SECONDS, Reply(split_in_two))
    fleet = make_fleet(llm_base_url=models.url, llm_model="m", llm_concurrency=SLOTS, **PATIENT)
    fleet.serve()
    fleet.start("beat")
    history: History = await remember(fleet)
    await history.save_batch(MEMORIES)
    pending = [await _count_pending(history)]
    first = fleet.start("work", llm_api_key="first")
    await asyncio.to_thread(models.wait_for_calls, ALONE, 60, CHAT)
    pending.append(await _count_pending(history))
    fleet.start("work", llm_api_key="second")
    await eventually(lambda: _both_have_called(models), 30, "both at work")
    calls_before = len(models.chat_calls)
    await asyncio.to_thread(models.wait_for_calls, TOGETHER, 60, CHAT)
    pending.append(await _count_pending(history))
    first.signal(signal.SIGTERM)
    assert await asyncio.to_thread(first.ended, 30), fleet.log[-2000:]
    await history.quiet(within=60)

    assert pending == sorted(pending, reverse=True)
    assert pending[0] > pending[1] > pending[2]
    calls_by_note = Counter(_note(call) for call in models.chat_calls)
    assert calls_by_note == Counter(save.content for save in history.saves)
    assert len(await history.listed()) == 2 * MEMORIES
    report(await history.check("workers come and go", 1))
    calls = models.chat_calls
    assert _rate(calls[calls_before:TOGETHER]) > 1.4 * _rate(calls[:ALONE])


async def test_a_slot_is_refilled_while_a_slow_call_still_lasts(
    make_fleet: Callable[..., Fleet], remember: Callable[..., Any], models: ModelServer
) -> None:
    """A batch that waited for its slowest call would not send a third note until then."""
    models.chat_replies.append(Hang())
    models.chat_default = Reply("[]")
    fleet = make_fleet(llm_base_url=models.url, llm_model="m", llm_concurrency=SLOTS, **PATIENT)
    fleet.serve()
    history: History = await remember(fleet)
    await history.save_batch(20)
    fleet.start("beat")
    fleet.start("work")
    await asyncio.to_thread(models.wait_for_calls, 20, 30, CHAT)
    models.release()  # all others were sent while the first call lasted
    await history.quiet(within=30)
    assert {memory["state"] for memory in await history.listed()} == {"kept-raw"}


async def test_a_worker_keeps_to_its_number_of_calls_at_once_however_many_wake_ups_it_gets(
    make_fleet: Callable[..., Fleet], remember: Callable[..., Any], models: ModelServer
) -> None:
    models.chat_default = Slow(SECONDS, Reply("[]"))
    fleet = make_fleet(
        llm_base_url=models.url, llm_model="m", llm_concurrency=SLOTS, dispatch_interval=0.05, **PATIENT
    )
    fleet.serve()
    history: History = await remember(fleet)
    await history.save_batch(12)
    fleet.start("beat")
    fleet.start("work")
    await history.quiet(within=60)
    times = [call.at for call in models.chat_calls]
    assert len(times) == 12
    # A slot sends its next call when the last one is answered, so no longer period contains more calls.
    assert min(later - earlier for earlier, later in zip(times, times[SLOTS:], strict=False)) > 0.9 * SECONDS


async def _count_pending(history: History) -> int:
    return int((await history.status())["pending"]["enrichment"])


async def _both_have_called(models: ModelServer) -> bool:
    """Tell whether each of the two workers has filled its slots and completed a call in each."""
    calls_by_worker = Counter(call.headers["authorization"] for call in models.chat_calls)
    return len(calls_by_worker) == 2 and min(calls_by_worker.values()) > SLOTS


def _note(call: Call) -> str:
    return str(json.loads(call.body["messages"][-1]["content"])["content"])


def _rate(calls: list[Call]) -> float:
    """Return calls per second."""
    return linear_regression([call.at for call in calls], range(len(calls))).slope
