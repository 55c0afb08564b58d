"""Restart servers and programs that have ended.

The delay before a restart doubles with each early end, up to 30 seconds.
"""

import time
from collections.abc import Callable
from typing import Protocol

from services.local.signals import Signals, Stopped
from shared.foundation import errors

_FIRST_DELAY_SECONDS = 0.5
_MAX_DELAY_SECONDS = 30.0
_STABLE_SECONDS = 60.0  # after running this long, the next end counts as the first again


class Watched(Protocol):
    """The interface of a local server or program that can be supervised."""

    @property
    def name(self) -> str:
        """The name in messages."""

    @property
    def alive(self) -> bool:
        """Whether it runs."""

    def start(self) -> object:
        """Start it, again if it has ended."""


class Supervisor:
    """One supervised server or program and the number of its early ends."""

    def __init__(
        self, watched: Watched, say: Callable[[str], None], first_delay: float = _FIRST_DELAY_SECONDS
    ) -> None:
        self._watched = watched
        self._say = say
        self._first_delay = first_delay
        self._early_ends = 0
        self._started_at = time.monotonic()
        self._restart_at: float | None = None

    def check(self) -> None:
        """Schedule a restart if the process has ended, or restart it once the delay has passed."""
        now = time.monotonic()
        if self._watched.alive:
            return
        if self._restart_at is None:
            self._schedule_restart(now)
        elif now >= self._restart_at:
            self._start()

    def _schedule_restart(self, now: float) -> None:
        self._early_ends = 1 if now - self._started_at > _STABLE_SECONDS else self._early_ends + 1
        delay = min(_MAX_DELAY_SECONDS, self._first_delay * 2 ** min(self._early_ends - 1, 10))
        self._restart_at = now + delay
        self._say(f"{self._watched.name} died; it is started again in {delay:g} s")

    def _start(self) -> None:
        self._restart_at = None
        self._started_at = time.monotonic()
        try:
            self._watched.start()
        except Stopped:
            return
        except (errors.LociError, OSError) as error:
            self._say(str(error))
        else:
            self._say(f"{self._watched.name} was started again")


def supervise(supervisors: list[Supervisor], signals: Signals, pause: float = 0.1) -> None:
    """Let every supervisor check in turn, `pause` seconds apart, until this process is asked to stop."""
    while not signals.stopping:
        for supervisor in supervisors:
            supervisor.check()
        time.sleep(pause)
