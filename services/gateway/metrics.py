"""Metrics: this process's own requests, and what all processes share through Postgres."""

import time
from collections.abc import Iterable

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import RowMapping
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shared import errors
from shared.resources import Resources
from shared.work import backlog, tallies

CONTENT_TYPE = CONTENT_TYPE_LATEST
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


class Measured:
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
            await self._app(scope, receive, watched)
        finally:
            route = getattr(scope.get("route"), "path", "unknown")
            _requests.labels(scope["method"], route, status).inc()
            _seconds.labels(scope["method"], route).observe(time.perf_counter() - started)


async def text(resources: Resources) -> bytes:
    """Return every metric; without Postgres those of this process."""
    own = generate_latest(_registry)
    try:
        async with resources.postgres.fleet() as connection:
            stages, counters = await backlog.pending(connection), await tallies.every(connection)
    except errors.Unavailable:
        return own
    shared = CollectorRegistry()
    shared.register(_Shared([*_of_stages(stages), *_of_tallies(counters)]))
    return own + generate_latest(shared)


class _Shared(Collector):
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _of_stages(rows: Iterable[RowMapping]) -> list[Metric]:
    names = {
        "waiting": "Rows left to do.",
        "running": "Rows in a worker's hands.",
        "dead": "Rows given up on.",
        "oldest_seconds": "Age of the oldest row left to do.",
    }
    families = {
        name: GaugeMetricFamily(f"loci_work_{name}", told, labels=["stage"]) for name, told in names.items()
    }
    for row in rows:
        for name, family in families.items():
            family.add_metric([row["stage"]], float(row[name]))
    return list(families.values())


def _of_tallies(rows: Iterable[RowMapping]) -> list[Metric]:
    families: dict[str, CounterMetricFamily] = {}
    for row in rows:
        name = row["name"]
        family = families.setdefault(
            name, CounterMetricFamily(f"loci_{name}", name.replace("_", " "), labels=["kind"])
        )
        family.add_metric([row["label"]], float(row["total"]))
    return list(families.values())
