"""Parse the Markdown of a transcript, as a client could."""

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
    """Return the entries of a transcript that `shared.conversation.state.markdown` rendered."""
    return [
        TranscriptEntry(
            Role(match["role"]),
            _MARKED_LINE_END.sub(r"\1", match["content"]),
            json.loads(match["metadata"] or "{}"),
            datetime.fromisoformat(match["time"]),
        )
        for match in _ENTRY.finditer(text)
    ]
