"""Receive an uploaded import completely and within its limits, before any of it is stored.

An import over a limit must store nothing, and its size is known only at its end. Also, no transaction
waits for a slow sender. Over a megabyte, the upload is kept in an unnamed file. Local files are not
received like this; only their lines have a limit.
"""

from collections.abc import AsyncIterator, Iterator
from typing import IO

from shared.foundation import errors
from shared.lifecycle.transfer import ndjson

MAX_BYTES = 32 * 1024 * 1024
# An exported line has more than 400 bytes, so no export reaches this limit before MAX_BYTES.
MAX_LINES = 100_000
MAX_IN_MEMORY_BYTES = 1024 * 1024


async def receive_upload(
    chunks: AsyncIterator[bytes], spool: IO[bytes], max_line_bytes: int = ndjson.MAX_BYTES
) -> None:
    """Write the chunks to a file and rewind it. Raises errors.TooLarge, naming the limit."""
    total_bytes, line_count, last_line_bytes = 0, 1, 0
    async for chunk in chunks:
        total_bytes += len(chunk)
        _check_limit(total_bytes, MAX_BYTES, "the import", "bytes")
        first, *others = (len(part) for part in chunk.split(b"\n"))
        continued_line_bytes = last_line_bytes + first
        last_line_bytes = others[-1] if others else continued_line_bytes
        longest = max(continued_line_bytes, *others, 0)
        _check_limit(longest - 1, max_line_bytes, f"line {line_count}", "bytes")
        line_count += len(others)
        _check_limit(line_count - 1, MAX_LINES, "the import", "lines")
        spool.write(chunk)
    spool.seek(0)


def _check_limit(size: int, limit: int, what: str, unit: str) -> None:
    if size > limit:
        raise errors.TooLarge(what, f"must be at most {limit} {unit}")


def lines_of(file: IO[bytes], max_bytes: int) -> Iterator[bytes]:
    """Yield the lines of a file. A line over `max_bytes` is cut to one byte more than that."""
    while line := file.readline(max_bytes + 1):
        line_part = line
        while len(line_part) > max_bytes and not line_part.endswith(b"\n"):
            line_part = file.readline(max_bytes + 1)
        yield line
