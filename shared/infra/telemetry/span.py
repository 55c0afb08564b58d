"""A span of a trace: what is recorded of one request, task or call."""

from typing import Literal

HEADER = "traceparent"
Kind = Literal["internal", "server", "client", "producer", "consumer"]
Attribute = str | int


class Span:
    """A span of a trace. This class discards everything: it is used while tracing is off."""

    trace_id: str | None = None

    def set_attributes(self, **attributes: Attribute) -> None:
        """Add attributes: ids and counts, never content."""

    def rename(self, name: str) -> None:
        """Change the name of the span, if it was not known at the start."""

    def fail(self, kind: str) -> None:
        """Mark the span as failed; `kind` is the class of the error."""
