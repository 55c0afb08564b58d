"""What waits until nobody is asking: saving to disk, and dropping what deleted points left behind.

Both stop the process for as long as they take (0.7 s and 3 s at 100 000 points), so they wait for
a pause. Saving waits no longer than `MOST_UNSAVED` points, or an orderly stop, which saves, would
take longer than 2 s, and a start after a crash would replay the engine's log for as long (16 000
points a second). Tidying may wait for hours: what remains of deleted points costs disk space and
inflates the rarity of words (the engine, like the server, goes on counting them). A start tidies too.
"""

import asyncio
import logging
import time

from services.local.vectors.catalog import Catalog

_LOG = logging.getLogger(__name__)

MAX_UNSAVED_POINTS = 10_000
_LOOK_EVERY = 0.5  # seconds
_SAVE_AFTER = 2.0
_TIDY_AFTER = 60.0


class IdleTimer:
    """How long nobody has asked for anything."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def interrupt(self) -> None:
        """Note a request."""
        self._last = time.monotonic()

    @property
    def seconds(self) -> float:
        """The length of the pause so far."""
        return time.monotonic() - self._last


async def run_forever(catalog: Catalog, rest: IdleTimer) -> None:
    """Look after the collections until cancelled."""
    while True:
        await asyncio.sleep(_LOOK_EVERY)
        try:
            flush_if_idle(catalog, rest.seconds)
        except Exception:  # noqa: BLE001  # whatever it was, the next look must come
            # A full disk is no reason to stop trying: what is unsaved is still in the log.
            _LOG.exception("saving or tidying failed")


def flush_if_idle(catalog: Catalog, rested: float) -> None:
    """Do what a pause of this many seconds allows."""
    for collection in catalog.collections:
        if collection.unsaved and (rested >= _SAVE_AFTER or collection.unsaved >= MAX_UNSAVED_POINTS):
            collection.save()
        if rested >= _TIDY_AFTER:
            collection.tidy()
