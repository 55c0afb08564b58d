"""Refuse calls to a dependency for a moment after one has failed.

Without a circuit breaker, every request to a database that does not respond waits for the whole timeout.
"""

import time

from shared.foundation import errors


class CircuitBreaker:
    """A context manager around calls: after an errors.Unavailable it refuses calls for `pause` seconds."""

    def __init__(self, dependency: str, pause: float = 1.0) -> None:
        self._dependency = dependency
        self._pause = pause
        self._open_until = 0.0
        self._reason = ""

    def __enter__(self) -> None:
        wait_seconds = self._open_until - time.monotonic()
        if wait_seconds > 0:
            reason = f"it failed a moment ago: {self._reason}"
            raise errors.Unavailable(self._dependency, reason, retry_after=wait_seconds)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, errors.Unavailable):
            self._open_until = time.monotonic() + self._pause
            self._reason = error.reason
