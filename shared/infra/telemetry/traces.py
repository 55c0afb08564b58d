"""Traces that lead from a request over its job to the call of a model.

    gateway        worker                              model endpoint
    POST /v1/… ──▶ enrich, for that job ──▶ POST chat/completions ──▶ header `traceparent`
        │            ▲ continues the `traceparent` that is stored with the job
        └──▶ wake-up enrichment.enrich_pending ──▶ the task: its message has the same header

A job stores the trace of the request that wrote it. A wake-up has the trace of only one request,
because a burst of requests shares one message. So the work for a job continues the trace of the job,
whichever message started the task.

Tracing is off, and OpenTelemetry is not imported, unless LOCI_OTLP_ENDPOINT is set. Spans contain
names, ids and counts. A failure is recorded as the class of the exception without its message, because
the message may quote a memory.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from shared.foundation import errors
from shared.foundation.config import Settings
from shared.infra.telemetry.span import Attribute, Kind, Span

if TYPE_CHECKING:
    from shared.infra.telemetry.otlp import Tracer

_UNTRACED = Span()
_tracer: "Tracer | None" = None


def set_up(settings: Settings, process: str) -> None:
    """Send spans to the collector that the settings name; without one, switch tracing off.

    Raises errors.Misconfigured if the extra `telemetry` is not installed.
    """
    global _tracer  # noqa: PLW0603  (one per process)
    if _tracer is not None:
        _tracer.close()
    _tracer = None if settings.otlp_endpoint is None else _create_tracer(settings.otlp_endpoint, process)


def _create_tracer(endpoint: str, process: str) -> "Tracer":
    try:
        from shared.infra.telemetry.otlp import Tracer
    except ImportError:
        raise errors.Misconfigured(
            "LOCI_OTLP_ENDPOINT is set, but the extra is missing: pip install 'loci[telemetry]'"
        ) from None
    return Tracer(endpoint, process)


@contextmanager
def span(
    name: str,
    kind: Kind = "internal",
    parent: str | None = None,
    links: Sequence[str] = (),
    **attributes: Attribute,
) -> Iterator[Span]:
    """Record a block as one span.

    The span is a child of the current span, or of `parent` if that belongs to another trace. `parent`
    and `links` are traceparents as W3C Trace Context defines them.
    """
    if _tracer is None:
        yield _UNTRACED
        return
    with _tracer.span(name, kind, parent, links, attributes) as recorded_span:
        yield recorded_span


def traceparent() -> str | None:
    """Return the current span as a traceparent, for another process to continue; None if tracing is off."""
    return None if _tracer is None else _tracer.traceparent()


def flush() -> None:
    """Send the remaining spans. Blocks for a few seconds at most."""
    if _tracer is not None:
        _tracer.flush()
