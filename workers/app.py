"""The Celery app as a worker sees it, and the one event loop of a worker process.

The core is async and its connections belong to a loop, so a process keeps one loop, in a thread
of its own, from its start to its end. Tasks run in Celery's threads and wait there for a
coroutine on that loop: `run`. Concurrency within a claim is the coroutine's; more of it is more
processes. Time limits do not exist in Celery's threads pool, so `run` has the deadline.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import structlog
from celery import Celery
from celery.schedules import schedule
from celery.signals import setup_logging, worker_init, worker_shutdown

from shared import config, stages, telemetry
from shared.clients.broker import celery_app
from shared.reindex import rebuild
from shared.resources import Resources, open_resources

log = structlog.get_logger()
Work = Callable[[Resources], Awaitable[Any]]


class _Process:
    """What a worker process keeps while it lives."""

    def __init__(self) -> None:
        self.settings = config.load()
        self.loop = asyncio.new_event_loop()
        self.closing = AsyncExitStack()
        self.resources: Resources | None = None

    def start(self) -> None:
        threading.Thread(target=self.loop.run_forever, name="loop", daemon=True).start()
        asyncio.run_coroutine_threadsafe(self._open(), self.loop).result(60)

    async def _open(self) -> None:
        self.resources = await self.closing.enter_async_context(open_resources(self.settings))
        await rebuild.prepare(self.resources)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self.closing.aclose(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)


_process: _Process | None = None


def _create() -> Celery:
    settings = config.load()
    created = celery_app(settings)
    created.conf.update(
        include=["workers.enrichment.tasks", "workers.embedding.tasks", "workers.dream.tasks", "workers.sweep.tasks"],
        beat_schedule={
            "hand on what is due": {
                "task": stages.HAND_ON_TASK,
                "schedule": schedule(settings.hand_on_every),
                "options": {"expires": settings.hand_on_every * 5},
            },
            "sweep": {
                "task": stages.SWEEP_TASK,
                "schedule": schedule(settings.sweep_every),
                "options": {"expires": settings.sweep_every},
            },
        },
        # In memory: beat only rings, and a ring that it repeats after a restart does no harm.
        beat_schedule_filename=str(settings.data_dir / "beat-schedule"),
    )
    return created


app = _create()


def run(work: Work) -> Any:
    """Run one piece of work on the process's loop and return what it returns; bounded by the lease.

    A drain claims for half a lease and has its last claims for most of another: a deadline before
    that would take them from it without their being given back.
    """
    if _process is None or _process.resources is None:
        raise RuntimeError("the worker has not started")
    deadline = _process.settings.lease * 1.5
    waiting = asyncio.run_coroutine_threadsafe(_bounded(work, _process.resources, deadline), _process.loop)
    return waiting.result(deadline + 5)


async def _bounded(work: Work, resources: Resources, deadline: float) -> Any:
    async with asyncio.timeout(deadline):
        return await work(resources)


@worker_init.connect
def _start(**_: object) -> None:
    global _process  # noqa: PLW0603  (one per process, as its name says)
    _process = _Process()
    _process.start()


@worker_shutdown.connect
def _stop(**_: object) -> None:
    if _process is not None:
        _process.stop()


@setup_logging.connect
def _log(**_: object) -> None:
    telemetry.set_up(config.load())
