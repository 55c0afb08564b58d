"""Watching what was started: what dies is started again, a little later each time it dies young."""

import time
from collections.abc import Callable
from typing import Protocol

from services.local.signals import Signals, Stopped
from shared.foundation import errors

_FIRST_DELAY = 0.5  # seconds
_LONGEST_DELAY = 30.0
_GROWN_UP = 60.0  # a life this long forgets the deaths before it


class Watched(Protocol):
    """Something that lives, dies, and can be started again: a store or a program."""

    @property
    def name(self) -> str:
        """What it is called in messages."""

    @property
    def alive(self) -> bool:
        """Whether it runs."""

    def start(self) -> object:
        """Start it, anew if it died."""


class Supervisor:
    """One watched thing and the deaths it had."""

    def __init__(
        self, watched: Watched, say: Callable[[str], None], first_delay: float = _FIRST_DELAY
    ) -> None:
        self._watched = watched
        self._say = say
        self._first_delay = first_delay
        self._deaths = 0
        self._born = time.monotonic()
        self._due: float | None = None

    def check(self) -> None:
        """See whether it lives; note its death, or start it once its delay has passed."""
        now = time.monotonic()
        if self._watched.alive:
            return
        if self._due is None:
            self._note_death(now)
        elif now >= self._due:
            self._start()

    def _note_death(self, now: float) -> None:
        self._deaths = 1 if now - self._born > _GROWN_UP else self._deaths + 1
        delay = min(_LONGEST_DELAY, self._first_delay * 2 ** min(self._deaths - 1, 10))
        self._due = now + delay
        self._say(f"{self._watched.name} died; it is started again in {delay:g} s")

    def _start(self) -> None:
        self._due = None
        self._born = time.monotonic()
        try:
            self._watched.start()
        except Stopped:
            return
        except (errors.LociError, OSError) as error:
            self._say(str(error))
        else:
            self._say(f"{self._watched.name} was started again")


def supervise(things: list[Supervisor], signals: Signals, pause: float = 0.1) -> None:
    """Look at each in turn until asked to stop."""
    while not signals.stopping:
        for thing in things:
            thing.check()
        time.sleep(pause)
