"""A folder in memory for the databases of tests, which kill processes but never the machine.

Databases sync each change to disk. On a disk, that is most of the time of creating a collection: a second
and more, ten times what it takes here.

A test run that is killed leaves its folder behind, and the folder takes memory until the machine restarts.
So each folder has a lock that its process holds, and whoever makes a new one removes those that nobody holds.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

_IN_MEMORY = Path("/dev/shm")  # noqa: S108  (a folder of its own is made in it)
_PREFIX = "loci-tests-"
_LOCK = "in-use"
_LEAST_FREE_BYTES = 6 * 1024**3


@contextmanager
def memory_folder(parent: Path = _IN_MEMORY) -> Iterator[Path]:
    """Yield a new folder in memory, or on disk where there is little memory, and remove it at the end."""
    _remove_abandoned(parent)
    with TemporaryDirectory(prefix=_PREFIX, dir=parent if _has_room(parent) else None) as name:
        unlocked = Path(name) / "lock"
        with unlocked.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            unlocked.rename(Path(name) / _LOCK)  # under this name, a lock is never without its holder
            yield Path(name)


def _remove_abandoned(parent: Path) -> None:
    """Remove the folders of test runs that were killed."""
    for path in parent.glob(f"{_PREFIX}*/{_LOCK}"):
        try:
            with path.open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path.parent, ignore_errors=True)
        except OSError:  # somebody uses it, or it belongs to another user, or it is gone by now
            continue


def _has_room(parent: Path) -> bool:
    can_write = parent.is_dir() and os.access(parent, os.W_OK)
    return can_write and min(shutil.disk_usage(parent).free, _available_memory()) >= _LEAST_FREE_BYTES


def _available_memory() -> int:
    """Return how many bytes there are. The limit of a folder in memory may be higher."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    (kilobytes,) = (int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    return kilobytes * 1024
