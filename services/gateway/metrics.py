"""Metrics: this process's own requests, and what all processes share through Postgres."""

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
)
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.gateway import fleet_metrics
from shared.foundation import errors
from shared.jobs import backlog
from shared.jobs import counters as fleet_counters
from shared.platform.resources import Resources

CONTENT_TYPE = CONTENT_TYPE_LATEST
disable_created_metrics()  # type: ignore[no-untyped-call]
_registry = CollectorRegistry()
_requests = Counter(
    "loci_http_requests", "Requests answered.", ["method", "route", "status"], registry=_registry
)
_seconds = Histogram(
    "loci_http_request_seconds",
    "Time from a request's first byte to the answer's last.",
    ["method", "route"],
    registry=_registry,
    buckets=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5),
)
_in_flight = Gauge("loci_http_requests_in_flight", "Requests being answered.", registry=_registry)
_degraded = Counter(
    "loci_degraded_responses",
    "Answers made without something, by what it was.",
    ["missing"],
    registry=_registry,
)


def count_degraded(without: Iterable[str]) -> None:
    """Count an answer for each thing that it was made without."""
    for one in without:
        _degraded.labels(one).inc()


class MetricsMiddleware:
    """Count and time every request under its route's template, never its path."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), "500"

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        try:
            with _in_flight.track_inprogress():
                await self._app(scope, receive, watched)
        finally:
            route = getattr(scope.get("route"), "path", "unknown")
            _requests.labels(scope["method"], route, status).inc()
            _seconds.labels(scope["method"], route).observe(time.perf_counter() - started)


async def render(resources: Resources) -> bytes:
    """Return every metric; without Postgres those of this process."""
    own = generate_latest(_registry)
    try:
        async with resources.postgres.across_tenants() as connection:
            rows, counters = (
                await backlog.backlog_by_stage(connection),
                await fleet_counters.read_all(connection),
            )
    except errors.Unavailable:
        return own
    shared = CollectorRegistry()
    alert = resources.settings.budget_alert
    shared.register(_Shared([*fleet_metrics.of_stages(rows), *fleet_metrics.of_tallies(counters, alert)]))
    return own + generate_latest(shared)


class _Shared(Collector):
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families
