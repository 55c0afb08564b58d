"""The process that reads one file: `python -m workers.documents.parsing FILE NAME TYPE SECONDS MEGABYTES`.

It writes lines of JSON to standard output: each block as [text, page, line_from, line_to], and at the end
{title, media_type}, or {reason, detail} if the file can't be read. It imports no settings and connects to
nothing.
"""

import sys
from pathlib import Path
from typing import Any

import orjson

from shared.memory.documents.parsed import Unreadable
from workers.documents.parsing import limits
from workers.documents.parsing.read import read


def main(path: str, file_name: str, declared_type: str, timeout_seconds: str, memory_mb: str) -> None:
    """Read a file within the limits, and print what it says or why it can't be read."""
    limits.apply(float(timeout_seconds), int(memory_mb))
    try:
        document = read(Path(path).read_bytes(), file_name, declared_type or None)
        for block in document.blocks:
            _write([block.text, block.page, block.line_from, block.line_to])
        _write({"title": document.title, "media_type": document.media_type})
    except Unreadable as error:
        _write({"reason": error.reason, "detail": error.detail})
    except MemoryError:
        detail = "The file needs more memory to be read than is allowed: divide it."
        _write({"reason": "too_large", "detail": detail})
    sys.stdout.buffer.flush()


def _write(line: Any) -> None:
    sys.stdout.buffer.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))


if __name__ == "__main__":
    main(*sys.argv[1:6])
