"""The scheduler of Celery beat: its schedule is in memory, and it writes a heartbeat file.

The schedule is in memory because beat only sends wake-ups, and a wake-up that is repeated after a
restart does no harm. A file would be corrupted when two beats use it at once.
"""

from typing import Any

import structlog
from celery.beat import Scheduler

from shared.foundation import config
from shared.infra import heartbeat

log = structlog.get_logger()


class HeartbeatScheduler(Scheduler):  # type: ignore[misc]  # celery ships no types
    """Celery's scheduler, with a heartbeat for the liveness probe."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._file = config.load().heartbeat_file
        super().__init__(*args, **kwargs)

    def tick(self, *args: Any, **kwargs: Any) -> Any:
        """Send the wake-ups that are due, and return the seconds until the next call."""
        heartbeat.write(self._file)
        return super().tick(*args, **kwargs)

    def _ensure_connected(self) -> Any:
        """Wait for the broker without a time limit, with a heartbeat: a restart would not help."""
        max_retries = self.app.conf.broker_connection_max_retries
        return self.connection.ensure_connection(self._on_connection_error, max_retries)

    def _on_connection_error(self, error: Exception, pause: float) -> None:
        heartbeat.write(self._file)
        log.warning("broker_unavailable", reason=type(error).__name__, again_in=pause)
