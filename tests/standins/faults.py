"""Faults of the connection or of HTTP; they fit any path."""

import threading
from dataclasses import dataclass, field
from typing import Any

from tests.standins.wire import Behaviour, Call, Wire


@dataclass(frozen=True)
class Status:
    """Answer with an error status in OpenAI's shape; `retry_after` in seconds or as an HTTP date."""

    code: int
    retry_after: float | str | None = None
    message: str = "the stand-in was told to fail"

    def play(self, _: Call, wire: Wire) -> None:
        """Send the error."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        error = {"message": self.message, "type": "stand_in", "param": None, "code": None}
        wire.send({"error": error}, self.code, headers)


@dataclass(frozen=True)
class Drop:
    """Close the connection without an answer."""

    def play(self, _: Call, wire: Wire) -> None:
        """Close."""
        wire.drop()


@dataclass(frozen=True)
class Cut:
    """Promise a whole answer, send `share` of its body and close."""

    share: float = 0.5

    def play(self, _: Call, wire: Wire) -> None:
        """Send a part."""
        wire.cut({"padding": "x" * 1000}, self.share)


@dataclass(frozen=True)
class Hang:
    """Stay silent until `release` is set (or the server stops), then go on with `then`."""

    then: Behaviour | None = None
    release: threading.Event = field(default_factory=threading.Event)

    def play(self, call: Call, wire: Wire) -> None:
        """Wait, then answer: by default as the server would have."""
        wire.hold(self.release)
        if not wire.closing.is_set():
            (self.then or wire.default).play(call, wire)


@dataclass(frozen=True)
class Slow:
    """Wait `seconds`, then go on with `then`, by default the server's default."""

    seconds: float
    then: Behaviour | None = None

    def play(self, call: Call, wire: Wire) -> None:
        """Wait, then answer."""
        if not wire.closing.wait(self.seconds):
            (self.then or wire.default).play(call, wire)


@dataclass(frozen=True)
class Garbage:
    """Answer 200 with a body that is not JSON."""

    body: str = "<html><body>upstream says hello</body></html>"

    def play(self, _: Call, wire: Wire) -> None:
        """Send it."""
        wire.send(self.body.encode())


@dataclass(frozen=True)
class WrongShape:
    """Answer 200 with JSON of another shape."""

    body: Any = field(default_factory=lambda: {"result": [1, 2, 3]})

    def play(self, _: Call, wire: Wire) -> None:
        """Send it."""
        wire.send(self.body)
