"""The metrics of this gateway's own requests, and those that all processes share through Postgres.

With several processes behind one socket (process_group.py), each response has the sums of all of them.
"""

import os
import time
from collections.abc import Iterable

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
    multiprocess,
)
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from starlette.types import Message, Receive, Scope, Send

from services.gateway import fleet_metrics
from services.gateway.middleware import HttpMiddleware
from shared.foundation import errors
from shared.jobs import backlog, model_pauses
from shared.jobs import counters as fleet_counters
from shared.platform.resources import Resources
from shared.verification import judge_report

CONTENT_TYPE = CONTENT_TYPE_LATEST
disable_created_metrics()  # type: ignore[no-untyped-call]
_registry = CollectorRegistry()
_requests = Counter(
    "loci_http_requests", "Requests that were answered.", ["method", "route", "status"], registry=_registry
)
_seconds = Histogram(
    "loci_http_request_seconds",
    "Seconds from the request to the last byte of its response.",
    ["method", "route"],
    registry=_registry,
    buckets=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5),
)
_in_flight = Gauge(
    "loci_http_requests_in_flight",
    "Requests that are running.",
    registry=_registry,
    multiprocess_mode="livesum",
)
_degraded = Counter(
    "loci_degraded_responses",
    "Responses that lack a part, by the missing part.",
    ["missing"],
    registry=_registry,
)
_tool_calls = Counter(
    "loci_tool_calls", "Calls of tools, by outcome.", ["tool", "outcome"], registry=_registry
)


def count_tool_call(tool: str, outcome: str) -> None:
    """Count a call of a tool by its outcome: `ok`, or `error` if it was answered with an error."""
    _tool_calls.labels(tool, outcome).inc()


def count_degraded(missing_parts: Iterable[str]) -> None:
    """Count a degraded response once for each part that it lacks."""
    for missing in missing_parts:
        _degraded.labels(missing).inc()


class MetricsMiddleware(HttpMiddleware):
    """Count and time every request under its route's template. Its path may hold keys and ids of callers."""

    async def handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102
        started, status = time.perf_counter(), "500"

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        try:
            with _in_flight.track_inprogress():
                await self._app(scope, receive, note_status)
        finally:
            route = getattr(scope.get("route"), "path", "unknown")
            _requests.labels(scope["method"], route, status).inc()
            _seconds.labels(scope["method"], route).observe(time.perf_counter() - started)


async def render(resources: Resources) -> bytes:
    """Return all metrics as text. If Postgres is unavailable, return those of this gateway only."""
    gateway_text = generate_latest(_gateway_registry())
    try:
        async with resources.postgres.across_tenants() as tx:
            stage_rows = await backlog.backlog_by_stage(tx)
            counter_rows = await fleet_counters.read_all(tx)
            pauses = await model_pauses.list_all(tx)
            judge = resources.judge_model
            report = await judge_report.report_in(tx, resources.settings, judge) if judge else None
    except errors.Unavailable:
        return gateway_text
    shared_registry = CollectorRegistry()
    families = [
        *fleet_metrics.stage_metrics(stage_rows),
        fleet_metrics.pause_metrics(pauses),
        fleet_metrics.judge_metric(report),
        *fleet_metrics.counter_metrics(counter_rows, resources.settings.budget_alert),
    ]
    shared_registry.register(_FixedCollector(families))
    return gateway_text + generate_latest(shared_registry)


def _gateway_registry() -> CollectorRegistry:
    """Return the metrics of this process, or the sums over the processes that share its socket."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return _registry
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry


class _FixedCollector(Collector):
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families
