"""Faults of the connection or of HTTP, for any path."""

import threading
from dataclasses import dataclass, field
from typing import Any

from tests.standins.wire import Behaviour, Call, Wire


@dataclass(frozen=True)
class Status:
    """Respond with an error status in OpenAI's shape; `retry_after` is in seconds or an HTTP date."""

    code: int
    retry_after: float | str | None = None
    message: str = "the stand-in was programmed to fail"
    error_code: str | None = None

    def play(self, _: Call, wire: Wire) -> None:
        """Send the error."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        error = {"message": self.message, "type": "stand_in", "param": None, "code": self.error_code}
        wire.send({"error": error}, self.code, headers)


@dataclass(frozen=True)
class Drop:
    """Close the connection without a response."""

    def play(self, _: Call, wire: Wire) -> None:
        """Close the connection."""
        wire.drop()


@dataclass(frozen=True)
class Cut:
    """Announce a whole response, send `share` of its body and close the connection."""

    share: float = 0.5

    def play(self, _: Call, wire: Wire) -> None:
        """Send a part of the response."""
        wire.cut({"padding": "x" * 1000}, self.share)


@dataclass(frozen=True)
class Hang:
    """Wait until `release` is set or the server stops, then behave like `then` or the default."""

    then: Behaviour | None = None
    release: threading.Event = field(default_factory=threading.Event)

    def play(self, call: Call, wire: Wire) -> None:
        """Wait, then respond unless the server stops."""
        wire.wait_for(self.release)
        if not wire.closing.is_set():
            (self.then or wire.default).play(call, wire)


@dataclass(frozen=True)
class Slow:
    """Wait `seconds`, then behave like `then` or the default."""

    seconds: float
    then: Behaviour | None = None

    def play(self, call: Call, wire: Wire) -> None:
        """Wait, then respond unless the server stops."""
        if not wire.closing.wait(self.seconds):
            (self.then or wire.default).play(call, wire)


@dataclass(frozen=True)
class Garbage:
    """Respond with status 200 and a body that is not JSON."""

    body: str = "<html><body>upstream says hello</body></html>"

    def play(self, _: Call, wire: Wire) -> None:
        """Send the body."""
        wire.send(self.body.encode())


@dataclass(frozen=True)
class WrongShape:
    """Respond with status 200 and JSON of another shape."""

    body: Any = field(default_factory=lambda: {"result": [1, 2, 3]})

    def play(self, _: Call, wire: Wire) -> None:
        """Send the body."""
        wire.send(self.body)
