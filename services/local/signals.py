"""Being asked to stop: the first signal asks, the second hurries.

Handlers only count. Raising from a handler could hit between the birth of a child and the note of
its number, and leave a process that nobody knows; so every wait looks at the count instead.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from shared.foundation import errors


class Stopped(errors.LociError):
    """A wait ended early because the stack was asked to stop."""


class Signals:
    """How often this process was asked to stop. Nobody but `ask` counts."""

    def __init__(self) -> None:
        self._count = 0

    @property
    def stopping(self) -> bool:
        """Whether a stop was asked for."""
        return self._count > 0

    @property
    def force(self) -> bool:
        """Whether it was asked for twice."""
        return self._count > 1

    def ask(self) -> None:
        """Count one more request to stop."""
        self._count += 1

    def check(self) -> None:
        """Raise Stopped once a stop was asked for."""
        if self.stopping:
            raise Stopped("stopped before it was ready")


@contextmanager
def counting(signals: Signals) -> Iterator[None]:
    """Count SIGINT, SIGTERM and SIGHUP while the block runs, instead of dying of them."""

    def count(_number: int, _frame: FrameType | None) -> None:
        signals.ask()

    with _handled(count):
        yield


@contextmanager
def interrupting() -> Iterator[None]:
    """Let SIGTERM and SIGHUP do what Ctrl-C does while the block runs: raise KeyboardInterrupt."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handled(interrupt):
        yield


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    # Only the main thread may set handlers; a stack in another thread is stopped by its block's end.
    ours = _to_catch() if threading.current_thread() is threading.main_thread() else []
    before = {number: signal.signal(number, handler) for number in ours}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def _to_catch() -> list[signal.Signals]:
    # SIGINT is caught even where it was ignored: a shell ignores it for every job it starts with `&`.
    # An ignored SIGHUP, on the other hand, is the wish of whoever wrote `nohup`.
    always = [signal.SIGINT, signal.SIGTERM]
    return always if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else [*always, signal.SIGHUP]
