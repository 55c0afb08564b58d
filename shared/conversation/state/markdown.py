r"""Render a transcript as Markdown that can be parsed back exactly, whatever its content is.

    ### user — 2026-05-04T08:15:00.000001Z — {"mood": "calm"}

    > Good morning.
    > ### This is a line of the content, not the heading of an entry.

The content is a block quote: every line of it begins with `> `. Therefore no line of the content
can look like the heading of an entry, neither to a line-based parser nor to a Markdown parser, and
a code fence that is never closed ends with its quote. A line ends at every character that any
parser takes for a line break (`\r`, form feed, U+2028, …). `> ` follows each of these characters,
so removing it restores the content. Metadata is JSON in ASCII, which has no raw line break or NUL.
"""

import json
import re
from collections.abc import Iterable

from shared.conversation.state.types import TranscriptEntry, to_json_time

_LINE_END = re.compile("(\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])")


def render(entries: Iterable[TranscriptEntry]) -> str:
    """Return a transcript as Markdown."""
    return "".join(f"{_render_heading(entry)}\n\n> {_quote(entry.content)}\n\n" for entry in entries)


def _render_heading(entry: TranscriptEntry) -> str:
    parts = [f"### {entry.role}", to_json_time(entry.timestamp)]
    if entry.metadata:
        parts.append(json.dumps(dict(entry.metadata)))
    return " — ".join(parts)


def _quote(content: str) -> str:
    return _LINE_END.sub(r"\1> ", content)
