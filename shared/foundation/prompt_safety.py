"""Recalled text is data: one line each, inside a fence that it can't close.

A memory may hold anything, also text written to look like a header, another memory's line or
an order to the model. So content is put on one line (line breaks become ⏎), characters that
hide or reorder text are dropped, and the fence's own tags are defused where content has them.
Patterns that merely sound like orders are left alone: filtering those is no defence.
"""

import re

OPEN, CLOSE = "<memory-data>", "</memory-data>"
# The tags, also with spaces in them or with joiners (which may stay in a text) between their letters.
_GAP = "[\\s\u200c\u200d\u034f\ufe00-\ufe0f]*"
_FENCE = re.compile(f"<(?={_GAP}(?:/{_GAP})?{_GAP.join('memory-data')})", re.IGNORECASE)
# Bidirectional controls, zero-width spaces and marks, the tag block, and other invisible formats.
# The joiners U+200C and U+200D stay: Persian and emoji are written with them.
_HIDDEN = re.compile(
    "[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")


def single_line(text: str) -> str:
    """Return content as it may stand in a line of a block."""
    visible = (_CONTROL.sub("", _HIDDEN.sub("", line)).strip() for line in text.splitlines())
    flat = " ⏎ ".join(filter(None, visible))
    return _FENCE.sub("\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}", flat)


def fence(header: str, lines: list[str]) -> str:
    """Return a block: its header, and its lines inside the fence."""
    return "\n".join([header, OPEN, *lines, CLOSE])
