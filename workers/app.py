"""The Celery app of the workers, and the one event loop of a worker process.

The code is async and its connections belong to an event loop. So a process has one loop, in a thread of
its own, from its start to its end. Tasks run in Celery's threads, and wait there for a coroutine on that
loop (`run_on_loop`). Coroutines provide the concurrency within a process; operators add processes for
more. Celery's thread pool has no time limits, so `run_on_loop` sets the deadline.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from operator import attrgetter
from typing import Any

import structlog
import uvloop
from celery import Celery, current_task
from celery.signals import setup_logging, worker_init, worker_shutdown, worker_shutting_down

from shared.foundation import config, errors
from shared.foundation.config import Settings
from shared.infra import telemetry
from shared.infra.broker import celery_app
from shared.infra.telemetry import traces
from shared.jobs import counters as fleet_counters
from shared.lifecycle.reindex import rebuild as rebuild_index
from shared.platform.resources import Resources, open_resources
from workers.runtime import drain as job_drain
from workers.runtime import error_privacy, liveness, startup, tracing

log = structlog.get_logger()
AsyncTask = Callable[[Resources], Awaitable[Any]]
_QUEUES = ("enrichment", "embedding", "documents", "summary", "dream", "sweep")


class _Process:
    """The settings, event loop and resources of a worker process."""

    def __init__(self) -> None:
        self.settings = config.load()
        self.loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        self.exit_stack = AsyncExitStack()
        self.resources: Resources | None = None
        self.running_tasks: set[asyncio.Task[Any]] = set()

    def start(self) -> None:
        threading.Thread(target=self.loop.run_forever, name="loop", daemon=True).start()
        asyncio.run_coroutine_threadsafe(self._open(), self.loop).result(60)

    async def _open(self) -> None:
        startup.require_usable(self.settings)
        self.resources = await self.exit_stack.enter_async_context(open_resources(self.settings))
        await self.exit_stack.enter_async_context(fleet_counters.gather_detached(self.resources.postgres))
        await rebuild_index.prepare_index(self.resources)

    def begin_shutdown(self) -> None:
        """Claim no more jobs, and cancel what is still running after the grace period."""
        job_drain.stopping.set()
        self.loop.call_soon_threadsafe(
            self.loop.call_later, self.settings.worker_shutdown_grace, self._cancel
        )

    def _cancel(self) -> None:
        for task in self.running_tasks:
            task.cancel()

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self.exit_stack.aclose(), self.loop).result(10)
        traces.flush()
        self.loop.call_soon_threadsafe(self.loop.stop)


_process: _Process | None = None


def _create() -> Celery:
    settings = config.load()
    new_app = celery_app(settings)
    new_app.conf.include = [f"workers.{queue}.tasks" for queue in _QUEUES]
    new_app.steps["worker"].add(liveness.liveness_step(_probe, settings.heartbeat_file))
    return new_app


def _probe() -> None:
    run_on_loop(_do_nothing)


async def _do_nothing(_: Resources) -> None:
    """Return at once: the liveness probe only checks that the loop runs coroutines."""


app = _create()


def run_on_loop(work: AsyncTask, lease: Callable[[Settings], float] = attrgetter("job_lease")) -> Any:
    """Run a coroutine function on the process's loop, and return its result.

    The deadline is 1.5 leases; `lease` returns the seconds for which the work claims its jobs. A drain
    claims for half a lease and may process its last jobs for most of another one, so an earlier deadline
    would interrupt it. Raise RuntimeError if the worker has not started.
    """
    if _process is None or _process.resources is None:
        raise RuntimeError("the worker has not started")
    deadline = lease(_process.settings) * 1.5
    with tracing.trace_task(current_task), error_privacy.hide_messages():
        future = asyncio.run_coroutine_threadsafe(_run_until(work, _process, deadline), _process.loop)
        return future.result(deadline + 5)


async def _run_until(work: AsyncTask, process: _Process, deadline: float) -> Any:
    task = asyncio.current_task()
    if task is None or process.resources is None:
        raise RuntimeError("the worker has not started")
    process.running_tasks.add(task)
    try:
        async with asyncio.timeout(deadline):
            return await work(process.resources)
    finally:
        process.running_tasks.discard(task)


@worker_init.connect
def _start(**_: object) -> None:
    global _process  # noqa: PLW0603  (one per process, as its name says)
    try:
        _process = _Process()
        _process.start()
    except Exception as error:
        # Celery only logs what a signal's receiver raises, and would go on with a worker that does nothing.
        reason = str(error) if isinstance(error, errors.LociError) else type(error).__name__
        log.critical("worker_not_started", reason=reason)
        raise SystemExit(f"the worker can't start: {reason}") from error


@worker_shutting_down.connect
def _begin_shutdown(**_: object) -> None:
    if _process is not None:
        _process.begin_shutdown()


@worker_shutdown.connect
def _stop(**_: object) -> None:
    if _process is not None:
        _process.stop()


@setup_logging.connect
def _set_up_logging(**_: object) -> None:
    telemetry.set_up(config.load(), "worker")
