"""The roles of a turn or transcript entry, and the longest content that one may have."""

from enum import StrEnum

MAX_TURN_CONTENT = 256_000
"""Characters."""


class Role(StrEnum):
    """Who speaks in a turn. A summary stands for the turns before it."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    SUMMARY = "summary"
