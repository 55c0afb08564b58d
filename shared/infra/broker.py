"""Publish wake-ups: Celery messages that say "this stage has due jobs". The jobs are in Postgres.

A wake-up may be lost, repeated or late, because nothing is stored in the broker alone: the sweep asks
Postgres what is due and sends wake-ups again. So no request waits for the broker. One thread publishes,
at most once per stage and interval, so that a burst of saves becomes a few messages, and a broker that
hangs blocks only this thread. A message has the trace of the first request of the burst.
"""

import threading
from collections import Counter
from collections.abc import Mapping

import celery  # its classes are imported when they are first used, which a publisher never does
import structlog
from kombu.entity import Queue

from shared.foundation import config, stages
from shared.foundation.content import declare_store
from shared.infra.broker_transport import BrokerTransport, MessageLost
from shared.infra.telemetry import traces
from shared.infra.telemetry.span import HEADER

_INTERVAL_SECONDS = 0.05
_MAX_WAKE_UPS = 8  # per stage and interval
_EXPIRES_SECONDS = 300
FAMILY = declare_store(
    "redis", "celery", reason="wake-ups without content, which are received or expire within minutes"
)
log = structlog.get_logger()


def celery_app(settings: config.Settings) -> "celery.Celery":
    """Return the Celery app with the settings that workers, beat and Flower share."""
    app = celery.Celery("loci", broker=settings.broker_address)
    app.conf.update(_settings(settings))
    return app


def _settings(settings: config.Settings) -> dict[str, object]:
    tasks = [stage.task for stage in stages.STAGES.values()] + [stages.DISPATCH_TASK, stages.SWEEP_TASK]
    return {
        "task_serializer": "json",
        "accept_content": ["json"],
        "task_ignore_result": True,
        "task_queues": [Queue(name) for name in sorted({stages.queue_of(task) for task in tasks})],
        "task_routes": {f"{stages.queue_of(task)}.*": {"queue": stages.queue_of(task)} for task in tasks},
        # A misspelt queue must be an error, or messages would collect in a list that nobody reads.
        "task_create_missing_queues": False,
        # Acknowledge early: lost work is recovered from the jobs, so redelivery would only repeat work.
        "task_acks_late": False,
        "worker_prefetch_multiplier": 1,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        # Flower needs task events. They are off by default and cost one small message per task.
        "worker_send_task_events": True,
        "task_send_sent_event": False,
        "worker_hijack_root_logger": False,
        "broker_transport_options": _transport_options(settings),
    }


def _transport_options(settings: config.Settings) -> dict[str, object]:
    # Otherwise a half-open connection is never noticed, and the worker receives nothing any more.
    return {
        "visibility_timeout": 600,
        "socket_timeout": 10,
        "socket_connect_timeout": 3,
        "socket_keepalive": True,
        "health_check_interval": 10,
        "retry_on_timeout": True,
        "global_keyprefix": f"{settings.prefix}:{FAMILY}:",
    }


class TaskPublisher:
    """Sends wake-ups and tasks from a thread of its own, so that callers never wait for the broker."""

    def __init__(self, settings: config.Settings) -> None:
        self._transport = BrokerTransport(settings.broker_address, _transport_options(settings))
        self._due_jobs: Counter[str] = Counter()
        self._trace_of_stage: dict[str, str | None] = {}
        self._tasks: list[tuple[str, dict[str, str | None], str | None]] = []
        self._lock = threading.Lock()
        self._has_work = threading.Event()
        self._is_stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def wake(self, stage: stages.Stage, jobs: int = 1) -> None:
        """Tell the workers that `jobs` more jobs of a stage are due."""
        with self._lock:
            self._due_jobs[stage.name] += jobs
            self._trace_of_stage.setdefault(stage.name, traces.traceparent())
        self._start_thread()
        self._has_work.set()

    def send(self, task: str, **arguments: str | None) -> None:
        """Send a task. Its arguments are for Flower only: the jobs decide what is done."""
        with self._lock:
            self._tasks.append((task, arguments, traces.traceparent()))
        self._start_thread()
        self._has_work.set()

    def _start_thread(self) -> None:
        with self._lock:
            if self._thread is None and not self._is_stopping.is_set():
                self._thread = threading.Thread(
                    target=self._publish_forever, name="task-publisher", daemon=True
                )
                self._thread.start()

    def close(self) -> None:
        """Stop publishing. The sweep sends the wake-ups that were not sent."""
        self._is_stopping.set()
        self._has_work.set()
        if self._thread is not None:
            self._thread.join(timeout=1)

    def _publish_forever(self) -> None:
        while not self._is_stopping.is_set():
            self._has_work.wait()
            self._has_work.clear()
            with self._lock:
                due_jobs, self._due_jobs = self._due_jobs, Counter()
                trace_of_stage, self._trace_of_stage = self._trace_of_stage, {}
                tasks, self._tasks = self._tasks, []
            for task, arguments, trace in tasks:
                self._send(task, arguments, trace)
            for name, jobs in due_jobs.items():
                self._send_wake_ups(stages.STAGES[name], jobs, trace_of_stage[name])
            self._is_stopping.wait(_INTERVAL_SECONDS)

    def _send_wake_ups(self, stage: stages.Stage, jobs: int, trace: str | None) -> None:
        for _ in range(min(_MAX_WAKE_UPS, -(-jobs // stage.batch_size))):
            self._send(stage.task, {"due_jobs": jobs}, trace)

    def _send(self, task: str, arguments: Mapping[str, str | int | None], trace: str | None) -> None:
        with traces.span(f"publish {task}", "producer", trace) as span:
            headers = {HEADER: current} if (current := traces.traceparent()) else {}
            try:
                self._transport.send(stages.queue_of(task), task, arguments, headers, _EXPIRES_SECONDS)
            except MessageLost as error:
                log.warning("wake_up_lost", task=task, reason=str(error))
                span.fail(str(error))
