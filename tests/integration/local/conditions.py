"""Wait for a condition, with a time limit."""

import time
from collections.abc import Callable


def until(condition: Callable[[], object], within: float = 20) -> None:
    """Wait for the condition; fail after `within` seconds."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.02)
