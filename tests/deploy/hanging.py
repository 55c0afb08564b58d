"""A worker whose event loop can be blocked: `python -m tests.deploy.hanging`, then SIGUSR2.

Its heartbeat is written more often than in production. Nothing else differs from `loci work`.
"""

import signal
import threading

from services.commands import run
from shared.infra import heartbeat
from workers import app

heartbeat.INTERVAL_SECONDS = 0.1


def _block_loop(*_: object) -> None:
    process = app._process
    assert process is not None
    process.loop.call_soon_threadsafe(threading.Event().wait)


if __name__ == "__main__":
    signal.signal(signal.SIGUSR2, _block_loop)
    run.worker("sweep", 1)
