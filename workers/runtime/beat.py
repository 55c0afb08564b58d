"""Celery beat: two periodic tasks, whose schedule is in memory, and a heartbeat file.

Beat needs the broker and two names of tasks, so nothing of the product is imported here: not the tasks
themselves, and no client of another database. The schedule is in memory because beat only sends wake-ups,
and a wake-up that is repeated after a restart does no harm. A file would be corrupted when two beats use it
at once.
"""

from typing import Any

import structlog
from celery import Celery
from celery.beat import Scheduler
from celery.schedules import schedule
from celery.signals import setup_logging

from shared.foundation import config, stages
from shared.infra import heartbeat, telemetry
from shared.infra.broker import celery_app

log = structlog.get_logger()


def run(settings: config.Settings) -> None:
    """Send the wake-ups that are due until a signal stops the process."""
    create_app(settings).Beat(loglevel=settings.log_level, quiet=True).run()


def create_app(settings: config.Settings) -> Celery:
    """Return the Celery app with the schedule of both periodic tasks."""
    app = celery_app(settings)
    app.conf.update(
        beat_schedule={
            "dispatch-due-jobs": {
                "task": stages.DISPATCH_TASK,
                "schedule": schedule(settings.dispatch_interval),
                "options": {"expires": settings.dispatch_interval * 5},
            },
            "sweep": {
                "task": stages.SWEEP_TASK,
                "schedule": schedule(settings.sweep_interval),
                "options": {"expires": settings.sweep_interval},
            },
        },
        beat_scheduler=HeartbeatScheduler,
        # Beat writes its heartbeat once per loop. A longer loop would look like a dead process.
        beat_max_loop_interval=30,
    )
    setup_logging.connect(_set_up_logging)
    return app


def _set_up_logging(**_: object) -> None:
    telemetry.set_up(config.load(), "worker")


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
