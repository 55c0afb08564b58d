"""Spans to an OpenTelemetry collector, over HTTP. Imported only where traces are wanted.

A provider of our own instead of the global one: what else in the process speaks OpenTelemetry
must not send through it, for nobody has looked at what that says.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from shared.infra.telemetry import traces

_TIMEOUT = 3.0
_context = TraceContextTextMapPropagator()


class Tracer:
    """Sends this process's spans. Samplers and headers follow OpenTelemetry's own OTEL_ variables."""

    def __init__(self, endpoint: str, process: str) -> None:
        resource = Resource.create({"service.name": f"loci-{process}"})
        self._provider = TracerProvider(resource=resource)
        exporter = OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces", timeout=_TIMEOUT)
        self._provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=1000))
        self._tracer = self._provider.get_tracer("loci")

    @contextmanager
    def span(
        self,
        name: str,
        kind: traces.Kind,
        parent: str | None,
        links: Sequence[str],
        attributes: Mapping[str, traces.Attribute],
    ) -> Iterator[traces.Span]:
        """Tell of a block; see `traces.span`."""
        with self._tracer.start_as_current_span(
            name,
            context=_continued(parent),
            kind=trace.SpanKind[kind.upper()],
            attributes=dict(attributes),
            links=[trace.Link(_read(one)) for one in links],
            record_exception=False,
            set_status_on_exception=False,
        ) as opened:
            told = _OtelSpan(opened)
            try:
                yield told
            except BaseException as error:
                told.fail(type(error).__name__)
                raise

    def traceparent(self) -> str | None:
        """Return the current span as W3C writes it."""
        carrier: dict[str, str] = {}
        _context.inject(carrier)
        return carrier.get(traces.HEADER)

    def flush(self) -> None:
        """Send what waits."""
        self._provider.force_flush(int(_TIMEOUT * 1000))

    def close(self) -> None:
        """Send what waits and stop."""
        self._provider.shutdown()


class _OtelSpan(traces.Span):
    def __init__(self, opened: trace.Span) -> None:
        self._opened = opened
        self.trace_id = trace.format_trace_id(opened.get_span_context().trace_id)

    def tell(self, **attributes: traces.Attribute) -> None:
        self._opened.set_attributes(attributes)

    def rename(self, name: str) -> None:
        self._opened.update_name(name)

    def fail(self, kind: str) -> None:
        self._opened.set_attribute("error.type", kind)
        self._opened.set_status(trace.StatusCode.ERROR)


def _continued(parent: str | None) -> Context | None:
    """Return the context to begin in; None for the current one, also where that is of the same trace."""
    if parent is None:
        return None
    here, told = trace.get_current_span().get_span_context(), _read(parent)
    if not told.is_valid or here.trace_id == told.trace_id:
        return None
    return trace.set_span_in_context(trace.NonRecordingSpan(told), Context())


def _read(traceparent: str) -> trace.SpanContext:
    carried = _context.extract({traces.HEADER: traceparent}, Context())
    return trace.get_current_span(carried).get_span_context()
