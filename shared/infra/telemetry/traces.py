"""Traces: one id from the request over the work row and the ring to the call of a model.

    gateway        worker                              model endpoint
    POST /v1/… ──▶ enrich, for that row ──▶ POST chat/completions ──▶ header `traceparent`
        │            ▲ continues the `traceparent` that the work row carries
        └──▶ ring enrichment.enrich_pending ──▶ the task: the message's header says the same

A row knows whose request made it, a ring only who rang last: rings of a burst are one message. So
what is done for a row continues the row's trace, wherever the task came from.

Off unless LOCI_OTLP_ENDPOINT is set; then nothing of OpenTelemetry is imported. Spans carry names,
ids and counts, and of a failure its kind: an exception's message may quote a memory.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from shared.foundation import errors
from shared.foundation.config import Settings

if TYPE_CHECKING:
    from shared.infra.telemetry.otlp import Tracer

HEADER = "traceparent"
Kind = Literal["internal", "server", "client", "producer", "consumer"]
Attribute = str | int


class Span:
    """What is told of one piece of work; this one tells nobody."""

    trace_id: str | None = None

    def set_attributes(self, **attributes: Attribute) -> None:
        """Add attributes: ids and counts, never content."""

    def rename(self, name: str) -> None:
        """Give the span its name when that was not known at its start."""

    def fail(self, kind: str) -> None:
        """Mark the work as failed."""


_UNTRACED = Span()
_tracer: "Tracer | None" = None


def set_up(settings: Settings, process: str) -> None:
    """Begin to send spans where the settings say; end it where they say nothing.

    Raises errors.Misconfigured without the extra `telemetry`.
    """
    global _tracer  # noqa: PLW0603  (one per process)
    if _tracer is not None:
        _tracer.close()
    _tracer = None if settings.otlp_endpoint is None else _open(settings.otlp_endpoint, process)


def _open(endpoint: str, process: str) -> "Tracer":
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
    """Tell of a block as one span, a child of the one around it unless `parent` is of another trace.

    `parent` and `links` are W3C traceparents.
    """
    if _tracer is None:
        yield _UNTRACED
        return
    with _tracer.span(name, kind, parent, links, attributes) as told:
        yield told


def traceparent() -> str | None:
    """Return where we are, to be continued elsewhere; None when nothing is traced."""
    return None if _tracer is None else _tracer.traceparent()


def flush() -> None:
    """Send what has not been sent yet; blocks for a few seconds at most."""
    if _tracer is not None:
        _tracer.flush()
