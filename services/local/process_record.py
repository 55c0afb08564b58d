"""The note of a running child on disk, so that the next start can stop what a killed one left.

A process is known by its number, the boot, and its start time in that boot: numbers are used again,
and the command line will not do either, for servers rewrite it (and `unshare` becomes `postgres`).
The note also names the owner: a child whose owner lives is not left over, it is somebody's.
"""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from services.local import private_file
from shared.foundation import errors

_BOOT = Path("/proc/sys/kernel/random/boot_id")


class StillOwned(errors.LociError):
    """The process of this record belongs to another that is alive."""


def write(record: Path, pid: int, stop_signal: int) -> None:
    """Note a child of this process."""
    note = {
        "pid": pid,
        "born": start_identity(pid),
        "stop_signal": int(stop_signal),
        "owner": os.getpid(),
        "owner_born": start_identity(os.getpid()),
    }
    private_file.write(record, json.dumps(note))


def start_identity(pid: int) -> str | None:
    """Return boot and start time of a live process; None when it is dead, a zombie, or unknowable."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] in "ZX" else f"{_BOOT.read_text().strip()}/{fields[19]}"
    except (FileNotFoundError, ProcessLookupError):
        return None


def is_working_directory(folder: Path) -> bool:
    """Tell whether some process has the folder as its working directory."""
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if link.samefile(folder):
                return True
        except OSError:
            continue
    return False


def stop_leftovers(records: list[Path], within: float = 10.0) -> None:
    """Stop the processes of these records that outlived their owner, and remove the records.

    All are asked at once; what still lives after `within` seconds is killed. Raises StillOwned,
    and stops nothing, when one of them belongs to a live process.
    """
    notes = [note for record in records if (note := _leftover(record)) is not None]
    for note in notes:
        _signal(note, note["stop_signal"])
    deadline = time.monotonic() + within
    while any(map(_lives, notes)) and time.monotonic() < deadline:
        time.sleep(0.02)
    for note in filter(_lives, notes):
        _kill_session(note)
    for record in records:
        record.unlink(missing_ok=True)


def _leftover(record: Path) -> dict[str, Any] | None:
    try:
        note: dict[str, Any] = json.loads(record.read_text())
    except (FileNotFoundError, ValueError):
        return None
    if not _lives(note):
        return None
    if start_identity(note["owner"]) == note["owner_born"]:
        raise StillOwned(f"{record.parent} is in use: process {note['pid']}, started by {note['owner']}")
    return note


def _lives(note: dict[str, Any]) -> bool:
    born = start_identity(note["pid"])
    return born is not None and born == note["born"]


def _signal(note: dict[str, Any], number: int) -> None:
    try:
        os.kill(note["pid"], number)
    except ProcessLookupError:
        return


def _kill_session(note: dict[str, Any]) -> None:
    try:
        os.killpg(note["pid"], signal.SIGKILL)
    except ProcessLookupError:
        return
    while _lives(note):
        time.sleep(0.01)
