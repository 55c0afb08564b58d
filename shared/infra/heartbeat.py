"""A file that shows that a process is alive, for a liveness probe of a process that serves no HTTP.

The file contains the monotonic time. All processes of a machine share that time, and
nobody can set it. If the file had the time of day, a correction of the time would make every
worker look dead at once.
"""

import time
from pathlib import Path

from shared.foundation.atomic_file import write_atomically

INTERVAL_SECONDS = 5.0
"""The time between two writes."""


def write(file: Path | None) -> None:
    """Record that the process is alive now; do nothing without a file."""
    if file is None:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, repr(time.monotonic()).encode())


def age_seconds(file: Path | None) -> float | None:
    """Return the seconds since the last write; None if there was none since the machine started."""
    try:
        seconds = time.monotonic() - float(file.read_text()) if file else -1.0
    except (OSError, ValueError):
        return None
    return seconds if seconds >= 0 else None
