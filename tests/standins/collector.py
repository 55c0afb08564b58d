"""A stand-in for an OpenTelemetry collector, which receives OTLP over HTTP and stores the spans."""

import threading
from dataclasses import dataclass
from gzip import decompress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Span:
    """A span as it was sent. Ids are hexadecimal; `parent` is empty for a root span."""

    service: str
    name: str
    kind: int
    trace: str
    id: str
    parent: str
    links: tuple[str, ...]
    attributes: dict[str, str]


class Collector:
    """A collector in threads of this process. Use it as a context manager."""

    def __init__(self) -> None:
        self._spans: list[Span] = []
        self._sent = bytearray()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """The base URL, for LOCI_OTLP_ENDPOINT."""
        return f"http://127.0.0.1:{self._listener.server_port}"

    @property
    def spans(self) -> list[Span]:
        """All spans so far."""
        with self._lock:
            return list(self._spans)

    @property
    def sent(self) -> bytes:
        """The bytes of all requests so far."""
        with self._lock:
            return bytes(self._sent)

    def of(self, trace: str) -> list[Span]:
        """Return the spans of one trace."""
        return [span for span in self.spans if span.trace == trace]

    def receive(self, raw: bytes) -> None:
        """Store the spans of one request."""
        request = ExportTraceServiceRequest.FromString(raw)
        spans = [
            _span(_to_dict(resource.resource.attributes)["service.name"], span)
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        with self._lock:
            self._sent += raw
            self._spans += spans

    def __enter__(self) -> Self:
        self._listener = _Listener(self)
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown()
        self._thread.join()
        self._listener.server_close()


def _span(service: str, span: Any) -> Span:
    links = tuple(link.trace_id.hex() for link in span.links)
    ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
    return Span(service, span.name, span.kind, *ids, links, _to_dict(span.attributes))


def _to_dict(attributes: Any) -> dict[str, str]:
    return {
        attribute.key: attribute.value.string_value or str(attribute.value.int_value)
        for attribute in attributes
    }


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, collector: Collector) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.collector = collector


class _Handler(BaseHTTPRequestHandler):
    server: _Listener

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            raw = decompress(raw)
        if self.path == "/v1/traces":
            self.server.collector.receive(raw)
        self.send_response(200 if self.path == "/v1/traces" else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Log nothing."""
