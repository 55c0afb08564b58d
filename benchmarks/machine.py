"""Describe the machine that the figures come from."""

import os
import platform
from importlib import metadata

_PACKAGES = (
    "loci",
    "fastapi",
    "uvicorn",
    "sqlalchemy",
    "asyncpg",
    "redis",
    "aiohttp",
    "qdrant-client",
    "qdrant-edge-py",
)
_GIB = 1024**3


def describe() -> str:
    """Return cores, memory and versions in two lines."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _GIB
    cores = len(os.sched_getaffinity(0))
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in _PACKAGES)
    hardware = f"{cores} cores, {memory:.0f} GiB, {platform.system()} {platform.machine()}"
    shared = "with all of Loci, its databases and the clients"
    return f"{hardware}, Python {platform.python_version()}; {shared}\n{versions}"


def load() -> str:
    """Return how busy the machine has been in the last minute, in running processes per core."""
    return f"{os.getloadavg()[0] / len(os.sched_getaffinity(0)):.1f} running processes per core"
