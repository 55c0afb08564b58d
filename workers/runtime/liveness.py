"""The liveness probe of a worker: it uses the same pool and loop as tasks, and then writes a heartbeat.

A process may exist although its event loop, or every thread of its pool, is stuck. So a probe is put
into the pool every few seconds. It runs a coroutine on the loop, as each task does, and writes the
heartbeat when it has returned. It waits in the pool behind tasks, so a heartbeat may be as old as the
longest task.

The probe is not sent through the broker. Without the broker every worker would fail it at once, and
restarting all of them would not help; a stuck connection is ended by the broker's own timeouts.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from celery import bootsteps

from shared.infra import heartbeat


class LivenessStep(bootsteps.StartStopStep):  # type: ignore[misc]  # celery ships no types
    """Probe the worker from the start of its pool to its stop. `liveness_step` sets the probe."""

    requires = {"celery.worker.components:Pool"}
    probe: Callable[[], Any]
    file: Path | None

    def __init__(self, worker: Any, **kwargs: Any) -> None:
        super().__init__(worker, **kwargs)
        self._stopping = threading.Event()

    def start(self, worker: Any) -> None:
        """Start probing, even while the broker is unavailable."""
        threading.Thread(target=self._run, args=(worker.pool,), name="liveness", daemon=True).start()

    def stop(self, worker: Any) -> None:
        """Stop probing."""
        del worker
        self._stopping.set()

    def _run(self, pool: Any) -> None:
        while not self._stopping.is_set():
            try:
                pool.apply_async(self.probe, callback=self._write_heartbeat).wait()
            except RuntimeError:
                return  # the pool accepts no more jobs, because the worker ends
            self._stopping.wait(heartbeat.INTERVAL_SECONDS)

    def _write_heartbeat(self, _: object) -> None:
        heartbeat.write(self.file)


def liveness_step(probe: Callable[[], Any], file: Path | None) -> type[LivenessStep]:
    """Return a worker step that runs this probe, and writes its heartbeats to `file`."""
    return type("Liveness", (LivenessStep,), {"probe": staticmethod(probe), "file": file})
