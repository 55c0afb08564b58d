"""The canary of a worker: a job that goes where the work goes, and a beat each time it comes through.

That the process exists says little: its loop may be stuck, or every thread of its pool. So a job is
put into the pool every few seconds, runs a coroutine on the loop, as each task does, and beats when
it has come back. It waits its turn behind tasks, so a beat may be as old as a task may be long.

It does not come through the broker. With the broker away every worker would lose it at once, and
killing all of them would mend nothing; the broker's own time-outs end a connection that is stuck.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from celery import bootsteps

from shared.infra import heartbeat


class LivenessStep(bootsteps.StartStopStep):  # type: ignore[misc]  # celery ships no types
    """Beats from the start of the pool to the stop of the worker; bound to a canary by `made_of`."""

    requires = {"celery.worker.components:Pool"}
    canary: Callable[[], Any]
    file: Path | None

    def __init__(self, worker: Any, **kwargs: Any) -> None:
        super().__init__(worker, **kwargs)
        self._stopping = threading.Event()

    def start(self, worker: Any) -> None:
        """Begin, even while the broker is away."""
        threading.Thread(target=self._go_on, args=(worker.pool,), name="heart", daemon=True).start()

    def stop(self, worker: Any) -> None:
        """End with the worker."""
        del worker
        self._stopping.set()

    def _go_on(self, pool: Any) -> None:
        while not self._stopping.is_set():
            try:
                pool.apply_async(self.canary, callback=self._beat).wait()
            except RuntimeError:
                return  # the pool takes nothing more: the worker ends
            self._stopping.wait(heartbeat.INTERVAL_SECONDS)

    def _beat(self, _: object) -> None:
        heartbeat.write(self.file)


def liveness_step(canary: Callable[[], Any], file: Path | None) -> type[LivenessStep]:
    """Return a heart that runs this canary and beats into this file."""
    return type("Heart", (LivenessStep,), {"canary": staticmethod(canary), "file": file})
