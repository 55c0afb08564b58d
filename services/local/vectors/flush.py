"""Save collections to disk and free the space of deleted points while the server is idle.

Both block the server (0.7 s and 3 s with 100 000 points), so they wait until no requests arrive.
Saving waits for `MAX_UNSAVED_POINTS` at most. With more, an orderly stop, which saves, would take
over 2 s, and a start after a crash would replay the engine's log for as long (16 000 points a second).
Freeing space may wait for hours: deleted points cost disk space and distort the inverse document
frequency (the engine, like a Qdrant server, still counts them). It also happens at every start.
"""

import asyncio
import logging
import time

from services.local.vectors.catalog import Catalog

_LOG = logging.getLogger(__name__)

MAX_UNSAVED_POINTS = 10_000
_CHECK_INTERVAL_SECONDS = 0.5
_SAVE_AFTER_SECONDS = 2.0
_TIDY_AFTER_SECONDS = 60.0


class IdleTimer:
    """Measure how long no request has arrived."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def interrupt(self) -> None:
        """Record that a request has arrived."""
        self._last = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the last request."""
        return time.monotonic() - self._last


async def run_forever(catalog: Catalog, idle_timer: IdleTimer) -> None:
    """Save and tidy the collections whenever the server is idle, until cancelled."""
    while True:
        await asyncio.sleep(_CHECK_INTERVAL_SECONDS)
        try:
            flush_if_idle(catalog, idle_timer.seconds)
        except Exception:  # noqa: BLE001  # whatever the error, the next check must run
            # Trying again is safe, for instance after a full disk: unsaved writes are still in the log.
            _LOG.exception("saving or tidying failed")


def flush_if_idle(catalog: Catalog, idle_seconds: float) -> None:
    """Save and tidy collections if the server has been idle for long enough."""
    for collection in catalog.collections:
        if collection.unsaved and (
            idle_seconds >= _SAVE_AFTER_SECONDS or collection.unsaved >= MAX_UNSAVED_POINTS
        ):
            collection.save()
        if idle_seconds >= _TIDY_AFTER_SECONDS:
            collection.tidy()
