"""The doorbell: tell workers that a stage has work. What the work is, the rows say.

Nothing acknowledged lives only in the broker, so a ring may be lost, doubled or late: the
sweep asks Postgres what is due and rings again. That is why a ring is never waited for. One
thread publishes, at most once per task and tick, so that a burst of saves becomes a few
messages, and a broker that hangs holds up nobody but this thread. The message carries the trace
of who rang first.
"""

import threading
from collections import Counter
from collections.abc import Mapping

import structlog
from celery import Celery
from kombu.entity import Queue
from kombu.exceptions import OperationalError

from shared.foundation import config, stages
from shared.infra.telemetry import traces

_TICK = 0.05
_MAX_RINGS = 8
_STALE = 300
log = structlog.get_logger()


def celery_app(settings: config.Settings) -> Celery:
    """Return the Celery app that publishers and workers agree on."""
    app = Celery("loci", broker=settings.broker_address)
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
        # A misspelt queue must fail here, not fill a list that nobody reads.
        "task_create_missing_queues": False,
        # Early acknowledgement: the rows are the one recovery path, a redelivery would be a second.
        "task_acks_late": False,
        "worker_prefetch_multiplier": 1,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        # For Flower; both are off by default and cost one small message per task.
        "worker_send_task_events": True,
        "task_send_sent_event": False,
        "worker_hijack_root_logger": False,
        # A half-open connection is otherwise never noticed, and the worker never wakes again.
        "broker_transport_options": {
            "visibility_timeout": 600,
            "socket_timeout": 10,
            "socket_connect_timeout": 3,
            "socket_keepalive": True,
            "health_check_interval": 10,
            "retry_on_timeout": True,
            "global_keyprefix": f"{settings.prefix}:celery:",
        },
    }


class TaskPublisher:
    """Ring for work, without waiting."""

    def __init__(self, settings: config.Settings) -> None:
        self._app = celery_app(settings)
        self._wanted: Counter[str] = Counter()
        self._rung_by: dict[str, str | None] = {}
        self._calls: list[tuple[str, dict[str, str | None], str | None]] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def wake(self, stage: stages.Stage, jobs: int = 1) -> None:
        """Ask for workers for a stage that `rows` more rows are due in."""
        with self._lock:
            self._wanted[stage.name] += jobs
            self._rung_by.setdefault(stage.name, traces.traceparent())
        self._start()
        self._wake.set()

    def send(self, task: str, **arguments: str | None) -> None:
        """Ask for one named task, with arguments for those who watch: the rows decide what is done."""
        with self._lock:
            self._calls.append((task, arguments, traces.traceparent()))
        self._start()
        self._wake.set()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._stopping:
                self._thread = threading.Thread(target=self._publish_for_ever, name="bell", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Stop ringing; what was not rung is found by the sweep."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout=1)

    def _publish_for_ever(self) -> None:
        while not self._stopping:
            self._wake.wait()
            self._wake.clear()
            with self._lock:
                wanted, self._wanted = self._wanted, Counter()
                rung_by, self._rung_by = self._rung_by, {}
                calls, self._calls = self._calls, []
            for task, arguments, trace in calls:
                self._send(task, arguments, trace)
            for name, rows in wanted.items():
                self._publish(stages.STAGES[name], rows, rung_by[name])
            threading.Event().wait(_TICK)

    def _publish(self, stage: stages.Stage, rows: int, trace: str | None) -> None:
        for _ in range(min(_MAX_RINGS, -(-rows // stage.batch_size))):
            self._send(stage.task, {"due_jobs": rows}, trace)

    def _send(self, task: str, arguments: Mapping[str, str | int | None], trace: str | None) -> None:
        with traces.span(f"ring {task}", "producer", trace) as span:
            headers = {traces.HEADER: told} if (told := traces.traceparent()) else {}
            options = {"queue": stages.queue_of(task), "headers": headers, "expires": _STALE}
            try:
                self._app.send_task(task, kwargs=arguments, retry=False, **options)
            except (OperationalError, OSError) as error:
                log.warning("wake_up_lost", task=task, reason=type(error).__name__)
                span.fail(type(error).__name__)
