"""Replace a file in one step, so that a reader finds the old content or the new, and never a part."""

import os
from pathlib import Path


def write_atomically(path: Path, content: bytes, *, mode: int | None = None, durable: bool = False) -> None:
    """Write `content` beside `path` and rename it into place.

    `mode` sets the permissions before the content is written. `durable` waits until the content is
    on disk: for what must survive a power cut. The folder must exist.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    try:
        with os.fdopen(os.open(draft, flags, mode if mode is not None else 0o666), "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
