"""Beat's schedule, in memory, and a heart that beats with every look at it.

In memory: beat only rings, and a ring that it repeats after a restart does no harm. A file would
be one that two beats spoil for each other.
"""

from typing import Any

import structlog
from celery.beat import Scheduler

from shared.foundation import config
from shared.infra import heartbeat

log = structlog.get_logger()


class HeartbeatScheduler(Scheduler):  # type: ignore[misc]  # celery ships no types
    """Celery's scheduler, seen to be alive."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._file = config.load().heartbeat_file
        super().__init__(*args, **kwargs)

    def tick(self, *args: Any, **kwargs: Any) -> Any:
        """Ring for what is due and return the seconds until the next look."""
        heartbeat.write(self._file)
        return super().tick(*args, **kwargs)

    def _ensure_connected(self) -> Any:
        """Wait for the broker as long as it takes, alive: a restart would not bring it back."""
        tries = self.app.conf.broker_connection_max_retries
        return self.connection.ensure_connection(self._still_away, tries)

    def _still_away(self, error: Exception, pause: float) -> None:
        heartbeat.write(self._file)
        log.warning("broker_unavailable", reason=type(error).__name__, again_in=pause)
