"""Wake-ups arrive twice and frozen workers continue: only one result is applied."""

import asyncio
import signal
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from shared.foundation import config
from shared.foundation.stages import ENRICH, INDEX, RecordKind
from tests.conftest import running_gateway
from tests.draining import drain, make_due, running_without_jobs
from tests.faults.history import History, RunFigures, split_in_two
from tests.faults.processes import Fleet
from tests.standins.behaviours import Hang, Reply
from tests.standins.models import ModelServer
from tests.standins.wire import CHAT
from workers.embedding import index
from workers.enrichment import enrich
from workers.runtime import drain as job_drain
from workers.runtime.concurrent_drain import ConcurrentDrain
from workers.sweep.sweep import sweep_once

Make = Callable[..., config.Settings]


async def test_a_message_delivered_eight_times_at_once_is_applied_once(
    make_settings: Make, models: ModelServer, tenant: str
) -> None:
    models.chat_default = Reply(split_in_two)
    async with running_without_jobs(_enriching(make_settings, models), tenant) as gateway:
        history = History(gateway.client)
        await history.save_batch(24)
        deliveries = [enrich.enrich_pending(gateway.resources) for _ in range(8)]
        deliveries += [job_drain.drain(gateway.resources, INDEX, index.index_batch) for _ in range(8)]
        await asyncio.gather(*deliveries)
        await drain(gateway.resources)
        await history.check("")
        assert len(await history.listed()) == 48
        assert len(models.chat_calls) == 24


async def test_a_reply_that_arrives_after_another_worker_claimed_the_job_is_dropped(
    make_settings: Make, models: ModelServer, tenant: str
) -> None:
    late = Hang(Reply('[{"content": "too late"}]'))
    models.chat_replies.append(late)
    models.chat_default = Reply(split_in_two)
    async with running_without_jobs(_enriching(make_settings, models), tenant) as gateway:
        history = History(gateway.client)
        save = await history.save()
        late_worker = asyncio.create_task(enrich.enrich_pending(gateway.resources))
        await asyncio.to_thread(models.wait_for_calls, 1)
        await make_due(gateway.resources)
        assert (await ConcurrentDrain(ENRICH, enrich.enrich).drain(gateway.resources, 1)).total() == 1
        late.release.set()
        await late_worker
        await drain(gateway.resources)
        await _check_two_memories_of(history, save.word)


async def test_a_worker_that_was_frozen_past_its_lease_changes_nothing_when_it_continues(
    make_fleet: Callable[..., Fleet],
    remember: Callable[..., Any],
    models: ModelServer,
    report: Callable[[RunFigures], None],
) -> None:
    late = Hang(Reply('[{"content": "too late"}]'))
    models.chat_replies.append(late)
    models.chat_default = Reply(split_in_two)
    fleet = make_fleet(llm_base_url=models.url, llm_model="m", llm_timeout=None, job_lease=2)
    fleet.serve()
    fleet.start("beat")
    frozen = fleet.start("work")
    history: History = await remember(fleet)
    save = await history.save()
    await asyncio.to_thread(models.wait_for_calls, 1, 20, CHAT)
    frozen.signal(signal.SIGSTOP)
    fleet.start("work")
    await history.quiet(within=20)
    late.release.set()
    frozen.signal(signal.SIGCONT)
    seen = len(models.chat_calls)
    # The frozen worker works again once it has asked the model about a new memory.
    await history.save_many(30)
    await asyncio.to_thread(models.wait_for_calls, seen + 30, 20, CHAT)
    await history.quiet(within=20)
    await _check_two_memories_of(history, save.word)
    report(await history.check("worker frozen past its lease", 1))


async def test_concurrent_sweeps_repair_the_same_as_a_single_sweep(make_settings: Make, tenant: str) -> None:
    async with running_gateway(make_settings(apart=True, job_max_attempts=1), tenant) as gateway:
        history = History(gateway.client)
        await history.save_many(20)
        await gateway.resources.index_writer.close()
        live = await gateway.resources.search_index.live(RecordKind.MEMORY)
        qdrant, path = gateway.resources.qdrant, f"collections/{live.collection}/points"
        ids = [p["id"] for p in (await qdrant.call("POST", f"{path}/scroll", {"limit": 10}))["points"]]
        await qdrant.call("POST", f"{path}/delete?wait=true", {"points": ids})
        counts = await asyncio.gather(*(sweep_once(gateway.resources) for _ in range(4)))
        assert sum(count.missing_points for count in counts) == 10
        await drain(gateway.resources)
        assert not any(asdict(await sweep_once(gateway.resources)).values())
        await history.check("")


def _enriching(make_settings: Make, models: ModelServer) -> config.Settings:
    return make_settings(apart=True, llm_base_url=models.url, llm_model="m")


async def _check_two_memories_of(history: History, word: str) -> None:
    texts = [memory["content"] for memory in await history.listed()]
    assert sum(word in text for text in texts) == 2
    assert "too late" not in texts
