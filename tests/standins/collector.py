"""A stand-in for an OpenTelemetry collector: OTLP over real HTTP, which keeps the spans it is sent."""

import threading
from dataclasses import dataclass
from gzip import decompress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Span:
    """One span as it was sent; ids are hexadecimal, `parent` is empty at the root."""

    service: str
    name: str
    kind: int
    trace: str
    id: str
    parent: str
    links: tuple[str, ...]
    attributes: dict[str, str]


class Collector:
    """The stand-in, in threads of this process. A context manager."""

    def __init__(self) -> None:
        self._spans: list[Span] = []
        self._sent = bytearray()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """The base URL, as LOCI_OTLP_ENDPOINT has it."""
        return f"http://127.0.0.1:{self._listener.server_port}"

    @property
    def spans(self) -> list[Span]:
        """All spans so far."""
        with self._lock:
            return list(self._spans)

    @property
    def sent(self) -> bytes:
        """All that was sent, byte for byte."""
        with self._lock:
            return bytes(self._sent)

    def of(self, trace: str) -> list[Span]:
        """Return the spans of one trace."""
        return [span for span in self.spans if span.trace == trace]

    def take(self, raw: bytes) -> None:
        """Keep what one request holds."""
        told = ExportTraceServiceRequest.FromString(raw)
        spans = [
            _span(_named(resource.resource.attributes)["service.name"], span)
            for resource in told.resource_spans
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
    return Span(service, span.name, span.kind, *ids, links, _named(span.attributes))


def _named(attributes: Any) -> dict[str, str]:
    return {one.key: one.value.string_value or str(one.value.int_value) for one in attributes}


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
            self.server.collector.take(raw)
        self.send_response(200 if self.path == "/v1/traces" else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
