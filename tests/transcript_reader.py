"""Reads a transcript's Markdown back, as whoever is given one may."""

import json
import re
from datetime import datetime

from shared.conversation.state.types import TranscriptEntry
from shared.foundation.roles import Role

_MARKED_LINE_END = re.compile("(\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])> ")
_ENTRY = re.compile(
    r"### (?P<role>[a-z]+) — (?P<time>\S+)(?: — (?P<metadata>\{[^\n]*\}))?"
    r"\n\n> (?P<content>.*?)\n\n(?=### |\Z)",
    re.DOTALL,
)


def parse(text: str) -> list[TranscriptEntry]:
    """Return the entries of a transcript that `shared.conversation.state.markdown` wrote."""
    return [
        TranscriptEntry(
            Role(found["role"]),
            _MARKED_LINE_END.sub(r"\1", found["content"]),
            json.loads(found["metadata"] or "{}"),
            datetime.fromisoformat(found["time"]),
        )
        for found in _ENTRY.finditer(text)
    ]
