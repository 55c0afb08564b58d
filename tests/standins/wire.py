"""A request to the stand-in (`Call`) and its connection (`Wire`).

The stand-in uses threads and sockets instead of an ASGI server. No ASGI server lets an application close
the connection without a response or in the middle of one, and a call that hangs must not block others.
"""

import json
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol

CHAT = "/v1/chat/completions"
EMBEDDINGS = "/v1/embeddings"


class Behaviour(Protocol):
    """What a stand-in does with a request."""

    def play(self, call: "Call", wire: "Wire", /) -> None:
        """Respond to `call` over `wire`, or fail in the way of this behaviour."""
        ...


@dataclass(frozen=True)
class Call:
    """A request. `at` is in seconds of `time.monotonic`; header names are in lower case."""

    path: str
    body: Any
    raw: bytes
    headers: Mapping[str, str]
    behaviour: Behaviour | None = None
    at: float = field(default_factory=time.monotonic)

    @property
    def prompt(self) -> str:
        """The texts of all messages of a chat request, one per line."""
        contents = (message.get("content") or "" for message in self._field("messages"))
        return "\n".join(map(_text, contents))

    @property
    def texts(self) -> list[str]:
        """The inputs of an embedding request."""
        inputs = self._field("input")
        return [inputs] if isinstance(inputs, str) else list(inputs)

    @property
    def model(self) -> str:
        """The requested model."""
        return str(self._field("model") or "stand-in")

    def _field(self, name: str) -> Any:
        return self.body.get(name, []) if isinstance(self.body, dict) else []


@dataclass
class Wire:
    """The open connection of a request, and what a behaviour needs to know about the server."""

    connection: socket.socket
    dimension: int
    default: Behaviour
    closing: threading.Event
    releases: list[threading.Event]
    closed: bool = False

    def send(self, body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Send a whole response: bytes unchanged, everything else as JSON (with NaN as Python writes it)."""
        self.connection.sendall(_response(body, status, headers or {}))

    def cut(self, body: object, share: float) -> None:
        """Send the headers and the first `share` of the body, then close the connection."""
        head, _, rest = _response(body, 200, {}).partition(b"\r\n\r\n")
        self.connection.sendall(head + b"\r\n\r\n" + rest[: int(len(rest) * share)])
        self.drop()

    def drip(self, body: object, seconds: float, parts: int = 10) -> None:
        """Send a response in equal parts over `seconds`."""
        response = _response(body, 200, {})
        size = max(1, -(-len(response) // parts))
        for start in range(0, len(response), size):
            self.connection.sendall(response[start : start + size])
            self.closing.wait(seconds / parts)

    def wait_for(self, release: threading.Event) -> None:
        """Wait until `release` is set. The server sets it when it stops."""
        self.releases.append(release)
        # The order matters: a server that stops between the two lines finds the event, or is noticed here.
        if not self.closing.is_set():
            release.wait()

    def drop(self) -> None:
        """Close the connection; the client receives what was sent until now."""
        self.closed = True


def _response(body: object, status: int, headers: Mapping[str, str]) -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    names = {"Content-Type": "application/json", "Content-Length": str(len(content)), **headers}
    head = [f"HTTP/1.1 {status} {_phrase(status)}", *(f"{name}: {value}" for name, value in names.items())]
    # One write: headers that are sent alone wait 40 ms for their acknowledgement.
    return "\r\n".join(head).encode() + b"\r\n\r\n" + content


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return " ".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))
