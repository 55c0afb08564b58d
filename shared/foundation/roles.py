"""The roles of a turn or transcript entry, and the longest content that one may have."""

import unicodedata
from enum import StrEnum

MAX_TURN_CONTENT = 256_000
"""Characters."""


class Role(StrEnum):
    """Who speaks in a turn. A summary stands for the turns before it."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    SUMMARY = "summary"


_OBEYED = frozenset({"system", "developer"})
# Letters of other scripts that look like those of these words.
_LOOK_ALIKE = str.maketrans("ѕутеморԁӏνοετρ", "sytemopdlvoetp")


def names_system(name: str) -> bool:
    """Return whether a reader would take the name of a speaker for that of the system, whom a model obeys."""
    letters = filter(str.isalnum, unicodedata.normalize("NFKC", name).casefold())
    return "".join(letters).translate(_LOOK_ALIKE) in _OBEYED
