"""Files that only their owner may read: passwords, addresses, process records.

Written beside their place and renamed, so that a reader or a crash never meets half a file.
"""

import secrets
from pathlib import Path

from shared.foundation.atomic_file import write_atomically


def write(path: Path, text: str) -> None:
    """Replace the file's content; mode 0600 from its first byte on."""
    write_atomically(path, text.encode(), mode=0o600)


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
