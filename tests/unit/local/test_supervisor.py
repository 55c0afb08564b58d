import threading
import time
from collections.abc import Callable

from services.local.process import StartFailed
from services.local.signals import Signals
from services.local.supervisor import Supervisor, supervise


class Mortal:
    """A supervised process that ends a given number of times."""

    name = "mortal"

    def __init__(self, early_ends: int = 0, *, fails: int = 0) -> None:
        self.starts = 0
        self.alive = early_ends == 0 and fails == 0
        self._dies = early_ends
        self._fails = fails

    def start(self) -> None:
        self.starts += 1
        if self.starts <= self._fails:
            raise StartFailed("the port is taken")
        self.alive = self.starts >= self._dies


def watched(mortal: Mortal, done: Callable[[], bool]) -> list[str]:
    messages: list[str] = []
    signals = Signals()
    supervisor = Supervisor(mortal, messages.append, first_delay=0.01)
    thread = threading.Thread(target=supervise, args=([supervisor], signals, 0.005))
    thread.start()
    deadline = time.monotonic() + 10
    while not done() and time.monotonic() < deadline:
        time.sleep(0.005)
    signals.ask()
    thread.join()
    return messages


def test_a_process_that_ended_is_restarted_and_reported() -> None:
    mortal = Mortal(early_ends=1)
    messages = watched(mortal, lambda: mortal.alive)
    assert mortal.starts == 1
    assert messages == ["mortal died; it is started again in 0.01 s", "mortal was started again"]


def test_each_early_end_doubles_the_delay() -> None:
    mortal = Mortal(early_ends=4)
    messages = watched(mortal, lambda: mortal.alive)
    delays = [line.split()[-2] for line in messages if "died" in line]
    assert delays == ["0.01", "0.02", "0.04", "0.08"]


def test_a_start_that_fails_is_reported_and_tried_again() -> None:
    mortal = Mortal(fails=2)
    messages = watched(mortal, lambda: mortal.alive)
    assert mortal.starts == 3
    assert messages.count("the port is taken") == 2


def test_a_running_process_is_not_restarted() -> None:
    mortal = Mortal()
    started_at = time.monotonic()
    assert watched(mortal, lambda: time.monotonic() - started_at > 0.1) == []
    assert mortal.starts == 0
