"""The limits of a process that reads a file."""

import resource
import signal

from shared.memory.documents.parsed import Unreadable

MAX_TEXT_BYTES = 32 * 1024 * 1024
"""The most text that a file may hold, in UTF-8. A text file of the largest upload fits."""
MAX_BLOCKS = 250_000
"""The most blocks that a file may hold."""
MAX_LINES = 2_000_000
"""The most lines of a text. It would take hundreds of bytes to hold one of a few letters."""
_MAX_OPEN_FILES = 64


def apply(timeout_seconds: float, memory_mb: int) -> None:
    """Limit this process: memory, processor time, time, no file may grow, no memory dump is written.

    The worker ends a process that takes too long. The alarm ends it if the worker was killed itself.
    """
    memory_bytes = memory_mb * 1024 * 1024
    seconds = max(1, round(timeout_seconds))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (_MAX_OPEN_FILES, _MAX_OPEN_FILES))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds + 1)


def too_much_text() -> Unreadable:
    """Return the error of a file with more text than is stored."""
    return Unreadable(
        "too_large", f"The file holds more than {MAX_TEXT_BYTES // 1024**2} MiB of text: divide it."
    )
