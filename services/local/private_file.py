"""Files that only their owner may read: passwords, addresses, process records."""

import secrets
from pathlib import Path

from shared.foundation.atomic_file import write_atomically


def write(path: Path, text: str) -> None:
    """Replace the file's content in one step. Its mode is 0600 from the first byte on."""
    write_atomically(path, text.encode(), mode=0o600)


def password(path: Path) -> str:
    """Return the password in the file, and create it on first use (256 random bits, safe in a URL).

    Passwords are needed because the databases listen on TCP, where every user of the machine can connect.
    """
    if not path.exists():
        write(path, secrets.token_urlsafe(32))
    return path.read_text().strip()


def folder(path: Path) -> Path:
    """Return the folder as an absolute path, and create it with mode 0700 if it does not exist."""
    path = path.absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    return path
