"""One request at the stand-in: what was asked (`Call`), and the connection it came by (`Wire`).

Threads and raw sockets instead of an ASGI server: no ASGI server lets an application close the
connection without an answer or in the middle of one, and a call that hangs must hold up nothing.
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
    """What a stand-in does with one request."""

    def play(self, call: "Call", wire: "Wire", /) -> None:
        """Answer `call` over `wire`, or fail to in the way that this behaviour stands for."""
        ...


@dataclass(frozen=True)
class Call:
    """A request as it arrived. `at` is seconds of `time.monotonic`; header names are lower case."""

    path: str
    body: Any
    raw: bytes
    headers: Mapping[str, str]
    behaviour: Behaviour | None = None
    at: float = field(default_factory=time.monotonic)

    @property
    def prompt(self) -> str:
        """All message texts of a chat request, one per line."""
        contents = (message.get("content") or "" for message in self._field("messages"))
        return "\n".join(map(_text, contents))

    @property
    def texts(self) -> list[str]:
        """The inputs of an embedding request."""
        given = self._field("input")
        return [given] if isinstance(given, str) else list(given)

    @property
    def model(self) -> str:
        """The model that was asked for."""
        return str(self._field("model") or "stand-in")

    def _field(self, name: str) -> Any:
        return self.body.get(name, []) if isinstance(self.body, dict) else []


@dataclass
class Wire:
    """The open connection of one request, and what a behaviour needs to know of its server."""

    connection: socket.socket
    dimension: int
    default: Behaviour
    closing: threading.Event
    held: list[threading.Event]
    closed: bool = False

    def send(self, body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Send a whole answer; bytes go as they are, all else as JSON (with NaN spelled as Python does)."""
        self.connection.sendall(_answer(body, status, headers or {}))

    def cut(self, body: object, share: float) -> None:
        """Send the head and the first `share` of the body, then close."""
        head, _, rest = _answer(body, 200, {}).partition(b"\r\n\r\n")
        self.connection.sendall(head + b"\r\n\r\n" + rest[: int(len(rest) * share)])
        self.drop()

    def drip(self, body: object, seconds: float, parts: int = 10) -> None:
        """Send an answer in equal parts over `seconds`."""
        answer = _answer(body, 200, {})
        size = max(1, -(-len(answer) // parts))
        for start in range(0, len(answer), size):
            self.connection.sendall(answer[start : start + size])
            self.closing.wait(seconds / parts)

    def hold(self, release: threading.Event) -> None:
        """Wait until `release` is set; the server sets it when it stops."""
        self.held.append(release)
        # In this order: a stop between the two lines still finds the event or is still seen here.
        if not self.closing.is_set():
            release.wait()

    def drop(self) -> None:
        """Close the connection; the client sees what was sent until now and then the end."""
        self.closed = True


def _answer(body: object, status: int, headers: Mapping[str, str]) -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    names = {"Content-Type": "application/json", "Content-Length": str(len(content)), **headers}
    head = [f"HTTP/1.1 {status} {_phrase(status)}", *(f"{name}: {value}" for name, value in names.items())]
    # One write: a head sent alone waits 40 ms for its acknowledgement.
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
