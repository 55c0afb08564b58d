"""A circuit breaker: after a failure, don't ask again for a moment.

Without it every request to a black-holed store waits out the whole time-out.
"""

import time

from shared.foundation import errors


class CircuitBreaker:
    """Refuse calls for `pause` seconds after one that found its dependency away."""

    def __init__(self, dependency: str, pause: float = 1.0) -> None:
        self._dependency = dependency
        self._pause = pause
        self._closed_until = 0.0

    def __enter__(self) -> None:
        wait = self._closed_until - time.monotonic()
        if wait > 0:
            raise errors.Unavailable(self._dependency, "it failed a moment ago", retry_after=wait)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, errors.Unavailable):
            self._closed_until = time.monotonic() + self._pause
