"""What the figures were taken on."""

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
    "qdrant-client",
    "qdrant-edge-py",
)
_GIB = 1024**3


def described() -> str:
    """Return cores, memory and versions in two lines."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _GIB
    cores = len(os.sched_getaffinity(0))
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in _PACKAGES)
    here = f"{cores} cores, {memory:.0f} GiB, {platform.system()} {platform.machine()}"
    shared = "all of Loci, its stores and the clients on it"
    return f"{here}, Python {platform.python_version()}; {shared}\n{versions}"
