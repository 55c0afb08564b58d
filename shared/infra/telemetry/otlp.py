"""Send spans to an OpenTelemetry collector over HTTP. Imported only if tracing is switched on.

The tracer provider is not the global one: other libraries in the process that use OpenTelemetry must
not send their spans through it, because those may contain the content of memories.
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

from shared.infra.telemetry.span import HEADER, Attribute, Kind, Span

_TIMEOUT_SECONDS = 3.0
_propagator = TraceContextTextMapPropagator()


class Tracer:
    """Sends the spans of this process. OpenTelemetry's OTEL_ variables set the sampler and the headers."""

    def __init__(self, endpoint: str, process: str) -> None:
        resource = Resource.create({"service.name": f"loci-{process}"})
        self._provider = TracerProvider(resource=resource)
        exporter = OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces", timeout=_TIMEOUT_SECONDS)
        self._provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=1000))
        self._tracer = self._provider.get_tracer("loci")

    @contextmanager
    def span(
        self,
        name: str,
        kind: Kind,
        parent: str | None,
        links: Sequence[str],
        attributes: Mapping[str, Attribute],
    ) -> Iterator[Span]:
        """Record a block as one span; see `traces.span`."""
        with self._tracer.start_as_current_span(
            name,
            context=_context_of(parent),
            kind=trace.SpanKind[kind.upper()],
            attributes=dict(attributes),
            links=[trace.Link(_parse_traceparent(link)) for link in links],
            record_exception=False,
            set_status_on_exception=False,
        ) as otel_span:
            recorded_span = _OtelSpan(otel_span)
            try:
                yield recorded_span
            except BaseException as error:
                recorded_span.fail(type(error).__name__)
                raise

    def traceparent(self) -> str | None:
        """Return the current span in the format of W3C Trace Context."""
        carrier: dict[str, str] = {}
        _propagator.inject(carrier)
        return carrier.get(HEADER)

    def flush(self) -> None:
        """Send the remaining spans."""
        self._provider.force_flush(int(_TIMEOUT_SECONDS * 1000))

    def close(self) -> None:
        """Send the remaining spans and stop."""
        self._provider.shutdown()


class _OtelSpan(Span):
    def __init__(self, otel_span: trace.Span) -> None:
        self._otel_span = otel_span
        self.trace_id = trace.format_trace_id(otel_span.get_span_context().trace_id)

    def set_attributes(self, **attributes: Attribute) -> None:
        self._otel_span.set_attributes(attributes)

    def rename(self, name: str) -> None:
        self._otel_span.update_name(name)

    def fail(self, kind: str) -> None:
        self._otel_span.set_attribute("error.type", kind)
        self._otel_span.set_status(trace.StatusCode.ERROR)


def _context_of(parent: str | None) -> Context | None:
    """Return the context to start a span in, or None for the current context.

    The current context is also right if the current span belongs to the parent's trace.
    """
    if parent is None:
        return None
    current_span, parent_span = trace.get_current_span().get_span_context(), _parse_traceparent(parent)
    if not parent_span.is_valid or current_span.trace_id == parent_span.trace_id:
        return None
    return trace.set_span_in_context(trace.NonRecordingSpan(parent_span), Context())


def _parse_traceparent(traceparent: str) -> trace.SpanContext:
    context = _propagator.extract({HEADER: traceparent}, Context())
    return trace.get_current_span(context).get_span_context()
