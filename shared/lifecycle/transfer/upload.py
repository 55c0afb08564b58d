"""Receive an import whole, within its limits, before anything of it is stored.

An import over a limit must store nothing, and its end is known only when it has come. A slow
sender holds up no transaction either. What is over a megabyte waits in an unnamed file.
A file that lies here already is read as it is; only its lines are bounded.
"""

from collections.abc import AsyncIterator, Iterator
from typing import IO

from shared.foundation import errors
from shared.lifecycle.transfer import ndjson

MAX_BYTES = 32 * 1024 * 1024
# An exported line has more than 400 bytes: only what is no export reaches this first.
MAX_LINES = 100_000
IN_MEMORY = 1024 * 1024


async def receive_upload(chunks: AsyncIterator[bytes], spool: IO[bytes]) -> None:
    """Write the chunks to a file and rewind it; raise errors.TooLarge naming the limit."""
    total, lines, open_line = 0, 1, 0
    async for chunk in chunks:
        total += len(chunk)
        _within(total, MAX_BYTES, "the import", "bytes")
        first, *others = (len(part) for part in chunk.split(b"\n"))
        longest, open_line = open_line + first, others[-1] if others else open_line + first
        _within(max(longest, *others, 0), ndjson.MAX_BYTES + 1, f"line {lines}", "bytes")
        lines += len(others)
        _within(lines, MAX_LINES + 1, "the import", "lines")
        spool.write(chunk)
    spool.seek(0)


def _within(size: int, limit: int, what: str, unit: str) -> None:
    if size > limit:
        raise errors.TooLarge(what, f"must be at most {limit} {unit}")


def lines_of(file: IO[bytes], most: int) -> Iterator[bytes]:
    """Yield the lines of a file; of one over `most` bytes only so much that its reader sees that."""
    while told := file.readline(most + 1):
        rest = told
        while len(rest) > most and not rest.endswith(b"\n"):
            rest = file.readline(most + 1)
        yield told
