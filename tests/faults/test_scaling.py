"""Workers come and go while there is work: throughput follows them; nothing is lost or done twice.

The long form, with figures, is `make scale`.
"""

import asyncio
import json
import signal
from collections import Counter
from collections.abc import Callable
from statistics import linear_regression
from typing import Any

from tests.faults.history import History, Tally, eventually, split_in_two
from tests.faults.processes import Fleet
from tests.standins.behaviours import Reply, Slow
from tests.standins.models import ModelServer
from tests.standins.wire import CHAT, Call

ROWS, ALONE, TOGETHER = 70, 20, 55
SLOTS = 2  # calls at once of one worker
SECONDS = 0.5
PATIENT = {"llm_timeout": 30, "job_lease": 120}
"""Production's: what a busy machine makes slow is not asked about again."""


async def test_two_workers_enrich_faster_than_one_and_each_entry_once(
    make_fleet: Callable[..., Fleet],
    remember: Callable[..., Any],
    models: ModelServer,
    tell: Callable[[Tally], None],
) -> None:
    models.chat_default = Slow(SECONDS, Reply(split_in_two))
    fleet = make_fleet(llm_base_url=models.url, llm_model="m", llm_concurrency=SLOTS, **PATIENT)
    fleet.serve()
    fleet.start("beat")
    history: History = await remember(fleet)
    await history.save_batch(ROWS)
    left = [await _left(history)]
    first = fleet.start("work", llm_api_key="first")
    await asyncio.to_thread(models.wait_for_calls, ALONE, 60, CHAT)
    left.append(await _left(history))
    fleet.start("work", llm_api_key="second")
    await eventually(lambda: _both(models), 30, "both at work")
    begun = len(models.chat_calls)
    await asyncio.to_thread(models.wait_for_calls, TOGETHER, 60, CHAT)
    left.append(await _left(history))
    first.signal(signal.SIGTERM)
    assert await asyncio.to_thread(first.ended, 30), fleet.log[-2000:]
    await history.quiet(within=60)

    assert left == sorted(left, reverse=True)
    assert left[0] > left[1] > left[2]
    asked = Counter(_note(call) for call in models.chat_calls)
    assert asked == Counter(save.content for save in history.saves)
    assert len(await history.listed()) == 2 * ROWS
    tell(await history.check("workers come and go", 1))
    calls = models.chat_calls
    assert _rate(calls[begun:TOGETHER]) > 1.4 * _rate(calls[:ALONE])


async def test_a_slot_is_refilled_while_a_slow_call_still_lasts(
    make_fleet: Callable[..., Fleet], remember: Callable[..., Any], models: ModelServer
) -> None:
    """A batch that waited for its slowest would ask about no third note until then."""
    models.chat_replies.append(Slow(8, Reply("[]")))
    models.chat_default = Reply("[]")
    fleet = make_fleet(llm_base_url=models.url, llm_model="m", llm_concurrency=SLOTS, **PATIENT)
    fleet.serve()
    history: History = await remember(fleet)
    await history.save_batch(20)
    fleet.start("beat")
    fleet.start("work")
    await asyncio.to_thread(models.wait_for_calls, 20, 30, CHAT)
    first, last = models.chat_calls[0], models.chat_calls[-1]
    assert last.at - first.at < 8
    await history.quiet(within=30)
    assert {one["state"] for one in await history.listed()} == {"kept-raw"}


async def test_one_worker_asks_no_more_at_once_than_it_may_however_often_it_is_rung(
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
    # A slot's next call comes when its last was answered: no window of that length holds more calls.
    assert min(later - earlier for earlier, later in zip(times, times[SLOTS:], strict=False)) > 0.9 * SECONDS


async def _left(history: History) -> int:
    return int((await history.status())["pending"]["enrichment"])


async def _both(models: ModelServer) -> bool:
    """Tell whether each worker has filled its slots, and they have come free for the first time."""
    asked = Counter(call.headers["authorization"] for call in models.chat_calls)
    return len(asked) == 2 and min(asked.values()) > SLOTS


def _note(call: Call) -> str:
    return str(json.loads(call.body["messages"][-1]["content"])["content"])


def _rate(calls: list[Call]) -> float:
    """Return calls per second."""
    return linear_regression([call.at for call in calls], range(len(calls))).slope
