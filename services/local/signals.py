"""Stop signals: the first asks the stack to stop, the second to stop without waiting.

The handlers only count, and every wait checks the count. A handler that raised could interrupt the
code between the start of a child and the writing of its record, and leave a process without one.
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
    """How often this process was asked to stop."""

    def __init__(self) -> None:
        self._count = 0

    @property
    def stopping(self) -> bool:
        """Whether this process was asked to stop."""
        return self._count > 0

    @property
    def force(self) -> bool:
        """Whether this process was asked to stop twice, and so is not to wait any longer."""
        return self._count > 1

    def ask(self) -> None:
        """Count one more request to stop."""
        self._count += 1

    def check(self) -> None:
        """Raise Stopped if this process was asked to stop."""
        if self.stopping:
            raise Stopped("stopped before it was ready")


@contextmanager
def counting(signals: Signals) -> Iterator[None]:
    """Count SIGINT, SIGTERM and SIGHUP while the block runs, instead of ending the process."""

    def count(_number: int, _frame: FrameType | None) -> None:
        signals.ask()

    with _handling(count):
        yield


@contextmanager
def interrupting() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM and SIGHUP while the block runs, as Ctrl-C does."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handling(interrupt):
        yield


@contextmanager
def _handling(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    # Only the main thread may set handlers. A stack in another thread is stopped by the end of its block.
    numbers = _signals_to_catch() if threading.current_thread() is threading.main_thread() else []
    previous_handlers = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in previous_handlers.items():
            signal.signal(number, previous)


def _signals_to_catch() -> list[signal.Signals]:
    # SIGINT is caught even if it was ignored, because shells ignore it in every job started with `&`.
    # An ignored SIGHUP stays ignored, because the user has started the stack with `nohup`.
    always = [signal.SIGINT, signal.SIGTERM]
    return always if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else [*always, signal.SIGHUP]
