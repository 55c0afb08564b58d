"""The roles of a turn or transcript entry, and how long one may be."""

from enum import StrEnum

MAX_TURN_CONTENT = 256_000


class Role(StrEnum):
    """Who speaks in a turn. A summary stands for the turns before it."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    SUMMARY = "summary"
