"""Standard input of `loci mcp`, by lines.

The SDK drops a line that it can't parse without an answer, so that a host would wait. One kind is valid JSON
all the same: the escape of half a character, as JavaScript writes it for a text that was cut within an emoji.
It reaches the gateway as a NUL, which is refused by the same rule.
"""

import json
import re
import sys
from collections.abc import AsyncIterator
from io import TextIOWrapper

import anyio

_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_HALF = re.compile("[\ud800-\udfff]")


class StandardInput:
    """The lines of standard input, as `stdio_server` reads them."""

    def __init__(self) -> None:
        self._file = anyio.wrap_file(TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="replace"))

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield the lines."""
        async for line in self._file:
            yield without_halves(line)


def without_halves(line: str) -> str:
    """Return a line of JSON with a NUL in place of each half of a character. What is no JSON stays."""
    if _ESCAPED_HALF.search(line) is None:
        return line
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return line
    return _HALF.sub(r"\\u0000", json.dumps(message, ensure_ascii=False))
