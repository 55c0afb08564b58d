"""Records of running child processes on disk, so that the next start can stop those left behind.

A process is identified by its id, the machine's boot id and its start time. The process id alone is
reused, and the command line does not identify a process, because servers rewrite theirs. A record
also identifies the owner: a child whose owner is alive is in use and must not be stopped.
"""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from services.local import private_file
from shared.foundation import errors

_BOOT_ID_FILE = Path("/proc/sys/kernel/random/boot_id")


class StillOwned(errors.LociError):
    """The process of this record belongs to another that is alive."""


def write(record: Path, pid: int, stop_signal: int) -> None:
    """Write the record of a child of this process."""
    content = {
        "pid": pid,
        "born": start_identity(pid),
        "stop_signal": int(stop_signal),
        "owner": os.getpid(),
        "owner_born": start_identity(os.getpid()),
    }
    private_file.write(record, json.dumps(content))


def start_identity(pid: int) -> str | None:
    """Return boot id and start time of a live process; None for one that has ended or cannot be read."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] in "ZX" else f"{_BOOT_ID_FILE.read_text().strip()}/{fields[19]}"
    except (FileNotFoundError, ProcessLookupError):
        return None


def is_id_taken(pid: int) -> bool:
    """Tell whether a process has this id, even one that has ended and that nobody has waited for."""
    return Path(f"/proc/{pid}").exists()


def is_working_directory(folder: Path) -> bool:
    """Tell whether the folder is the working directory of any process."""
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if link.samefile(folder):
                return True
        except OSError:
            continue
    return False


def stop_leftovers(records: list[Path], within: float = 10.0) -> None:
    """Stop the processes of these records that outlived their owner, and remove the records.

    All get their stop signal at once; those that still run after `within` seconds are killed. Raises
    StillOwned, and stops none, if the owner of one of them is alive.
    """
    leftovers = [content for record in records if (content := _read_leftover(record)) is not None]
    for leftover in leftovers:
        _signal(leftover, leftover["stop_signal"])
    deadline = time.monotonic() + within
    while any(map(_is_alive, leftovers)) and time.monotonic() < deadline:
        time.sleep(0.02)
    for leftover in filter(_is_alive, leftovers):
        _kill_session(leftover)
    for record in records:
        record.unlink(missing_ok=True)


def _read_leftover(record: Path) -> dict[str, Any] | None:
    try:
        content: dict[str, Any] = json.loads(record.read_text())
    except (FileNotFoundError, ValueError):
        return None
    if not _is_alive(content):
        return None
    if start_identity(content["owner"]) == content["owner_born"]:
        owner = content["owner"]
        raise StillOwned(f"{record.parent} is in use: process {content['pid']}, started by {owner}")
    return content


def _is_alive(content: dict[str, Any]) -> bool:
    identity = start_identity(content["pid"])
    return identity is not None and identity == content["born"]


def _signal(content: dict[str, Any], number: int) -> None:
    try:
        os.kill(content["pid"], number)
    except ProcessLookupError:
        return


def _kill_session(content: dict[str, Any]) -> None:
    try:
        os.killpg(content["pid"], signal.SIGKILL)
    except ProcessLookupError:
        return
    while _is_alive(content):
        time.sleep(0.01)
