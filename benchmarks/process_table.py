"""Read the process table of Linux (/proc): children and processor time."""

import os
from pathlib import Path


def family(pid: int) -> list[int]:
    """Return a process and its children's children, down to the last."""
    return _with_children(pid, _children_by_parent())


def processor_seconds(pid: int) -> tuple[float, float]:
    """Return the processor time of a process, and that of its ended children; 0 for one that has ended."""
    fields = _stat(Path(f"/proc/{pid}/stat"))
    per_second = os.sysconf("SC_CLK_TCK")
    own, ended = fields[11:13], fields[13:15]
    return sum(map(int, own)) / per_second, sum(map(int, ended)) / per_second


def _with_children(pid: int, children: dict[int, list[int]]) -> list[int]:
    return [pid, *(member for child in children.get(pid, []) for member in _with_children(child, children))]


def _children_by_parent() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        if fields := _stat(stat):
            children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    return children


def _stat(file: Path) -> list[str]:
    """Return the fields after the name, from the state on."""
    try:
        return file.read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
