"""Replace a file in one step: a reader sees the old content or the new, never a part of either."""

import os
from pathlib import Path


def write_atomically(path: Path, content: bytes, *, mode: int | None = None, durable: bool = False) -> None:
    """Write `content` to a temporary file in the same folder and rename it to `path`.

    `mode` sets the permissions of the file before anything is written to it. `durable` waits until the
    content is on disk, for files that must survive a power cut. The folder must exist.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    try:
        with os.fdopen(os.open(temporary, flags, mode if mode is not None else 0o666), "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
