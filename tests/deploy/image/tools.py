"""The programs that build and run the image, and the message of one that fails."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGES = {"buildah": "buildah", "mmdebstrap": "mmdebstrap", "runc": "runc"}


class Failed(Exception):
    """A step that failed, with what its program wrote."""


def require() -> None:
    """Raise Failed unless this process is root and every program is installed."""
    if os.geteuid() != 0:
        raise Failed("building and running the image without a container service needs root")
    missing = [package for program, package in PACKAGES.items() if shutil.which(program) is None]
    if missing:
        raise Failed(f"missing programs: apt-get install --no-install-recommends {' '.join(missing)}")


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run(*words: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """Run a program and return what it prints. Raises Failed with the end of its messages."""
    command = [str(word) for word in words]
    result = subprocess.run(
        command, cwd=cwd, env=os.environ | (env or {}), capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        raise Failed(f"{' '.join(command[:4])} …: {result.stderr.strip()[-2000:]}")
    return result.stdout
