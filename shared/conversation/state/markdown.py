r"""A transcript as Markdown that reads back exactly, whatever was said in it.

    ### user — 2026-05-04T08:15:00.000001Z — {"mood": "calm"}

    > Good morning.
    > ### This is a line of what was said, not the head of an entry.

What was said stands in a block quote: every line of it begins with `> `, so none can look like the
head of an entry, to a reader of lines or to one of Markdown, and a code fence that is left open
ends with its quote. A line ends wherever any reader may see its end (`\r`, form feed, U+2028, …),
and since the mark follows each such character, taking the marks away gives back every one.
Metadata is JSON in ASCII: it holds neither a line break nor a NUL as such.
"""

import json
import re
from collections.abc import Iterable

from shared.conversation.state.types import TranscriptEntry, shown_time

_LINE_END = re.compile("(\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])")


def render(entries: Iterable[TranscriptEntry]) -> str:
    """Return a transcript as Markdown."""
    return "".join(f"{_head(entry)}\n\n> {_quoted(entry.content)}\n\n" for entry in entries)


def _head(entry: TranscriptEntry) -> str:
    parts = [f"### {entry.role}", shown_time(entry.timestamp)]
    if entry.metadata:
        parts.append(json.dumps(dict(entry.metadata)))
    return " — ".join(parts)


def _quoted(content: str) -> str:
    return _LINE_END.sub(r"\1> ", content)
