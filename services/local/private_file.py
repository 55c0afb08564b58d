"""Files that only their owner may read: passwords, addresses, process records.

Written beside their place and renamed, so that a reader or a crash never meets half a file.
"""

import os
import secrets
from pathlib import Path


def write(path: Path, text: str) -> None:
    """Replace the file's content; mode 0600 from its first byte on."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    draft.replace(path)


def password(path: Path) -> str:
    """Return the password kept in the file, made on first use (256 random bits, safe in a URL).

    The stores listen on TCP, where every user of the machine can knock: hence passwords at all.
    """
    if not path.exists():
        write(path, secrets.token_urlsafe(32))
    return path.read_text().strip()


def folder(path: Path) -> Path:
    """Return the folder as an absolute path, made with mode 0700 if it is not there."""
    path = path.absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    return path
