import threading
import time
from collections.abc import Callable

from services.local.process import StartFailed
from services.local.signals import Signals
from services.local.supervisor import Supervisor, supervise


class Mortal:
    """Something watched that dies as often as it is told to."""

    name = "mortal"

    def __init__(self, dies: int = 0, *, fails: int = 0) -> None:
        self.starts = 0
        self.alive = dies == 0 and fails == 0
        self._dies = dies
        self._fails = fails

    def start(self) -> None:
        self.starts += 1
        if self.starts <= self._fails:
            raise StartFailed("the port is taken")
        self.alive = self.starts >= self._dies


def watched(mortal: Mortal, done: Callable[[], bool]) -> list[str]:
    said: list[str] = []
    signals = Signals()
    thing = Supervisor(mortal, said.append, first_delay=0.01)
    thread = threading.Thread(target=supervise, args=([thing], signals, 0.005))
    thread.start()
    deadline = time.monotonic() + 10
    while not done() and time.monotonic() < deadline:
        time.sleep(0.005)
    signals.ask()
    thread.join()
    return said


def test_what_died_is_started_again_with_a_line_that_says_so() -> None:
    mortal = Mortal(dies=1)
    said = watched(mortal, lambda: mortal.alive)
    assert mortal.starts == 1
    assert said == ["mortal died; it is started again in 0.01 s", "mortal was started again"]


def test_each_early_death_doubles_the_delay() -> None:
    mortal = Mortal(dies=4)
    said = watched(mortal, lambda: mortal.alive)
    delays = [line.split()[-2] for line in said if "died" in line]
    assert delays == ["0.01", "0.02", "0.04", "0.08"]


def test_a_start_that_fails_is_reported_and_tried_again() -> None:
    mortal = Mortal(fails=2)
    said = watched(mortal, lambda: mortal.alive)
    assert mortal.starts == 3
    assert said.count("the port is taken") == 2


def test_what_lives_is_left_alone() -> None:
    mortal = Mortal()
    began = time.monotonic()
    assert watched(mortal, lambda: time.monotonic() - began > 0.1) == []
    assert mortal.starts == 0
