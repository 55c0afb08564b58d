"""A sign of life in a file: what a process that serves no HTTP shows to a liveness probe.

The file holds the reading of the monotonic clock, which all processes of a machine share and
nobody can set: a step of the wall clock must not look like the death of every worker at once.
"""

import time
from pathlib import Path

INTERVAL_SECONDS = 5.0  # seconds between beats


def write(file: Path | None) -> None:
    """Note that the process is alive now; nothing if no file is set. A file is replaced whole."""
    if file is None:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f"{file.name}.new")
    fresh.write_text(repr(time.monotonic()))
    fresh.replace(file)


def age_seconds(file: Path | None) -> float | None:
    """Return the seconds since the last beat; None if there is none, or it is from before a restart."""
    try:
        seconds = time.monotonic() - float(file.read_text()) if file else -1.0
    except (OSError, ValueError):
        return None
    return seconds if seconds >= 0 else None
