"""The broker is a doorbell: emptied, it costs time and no work (F4)."""

from collections.abc import Callable
from typing import Any

import redis.asyncio

from tests.faults.history import History, Tally, eventually
from tests.faults.processes import Fleet
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer


async def test_a_broker_flushed_with_1000_rows_pending_delays_them_and_loses_none(
    make_fleet: Callable[..., Fleet],
    remember: Callable[..., Any],
    models: ModelServer,
    tell: Callable[[Tally], None],
) -> None:
    """Two beats ring at once besides: more rings than needed do no harm."""
    models.chat_default = Reply("[]")
    fleet = make_fleet(llm_base_url=models.url, llm_model="m")
    fleet.serve()
    history: History = await remember(fleet)
    await history.save_batch(1000)
    await _flush(fleet)
    for role in ("work", "beat", "beat"):
        fleet.start(role)
    for left in (700, 300):
        await _enriched_down_to(history, left)
        await _flush(fleet)
    await history.quiet(within=120)
    assert len(models.chat_calls) == 1000, f"seed {history.seed}"
    assert {one["state"] for one in await history.listed()} == {"kept-raw"}
    tell(await history.check("broker flushed with 1000 rows pending", 3))


async def _flush(fleet: Fleet) -> None:
    async with redis.asyncio.from_url(fleet.settings.broker_address) as broker:
        await broker.flushdb()


async def _enriched_down_to(history: History, left: int) -> None:
    async def done() -> bool:
        return int((await history.status())["pending"]["enrichment"]) <= left

    await eventually(done, 120, f"seed {history.seed}: {left} rows left")
