"""Put stored text into a prompt as data, inside a fence that no text can close.

A memory may hold anything, even text that looks like a header, like the line of another memory or
like an instruction to the model. So each content is put on one line (line breaks become ⏎), or its lines
are indented; characters that hide or reorder text are removed, and the tags of the fence are made harmless.
Text that merely reads like an instruction is not filtered, because such a filter protects nobody.
"""

import re

OPEN, CLOSE = "<memory-data>", "</memory-data>"
# Matches the tags also with spaces inside, or with joiners (which a text keeps) between the letters.
_GAP = "[\\s\u200c\u200d\u034f\ufe00-\ufe0f]*"
_FENCE = re.compile(f"<(?={_GAP}(?:/{_GAP})?{_GAP.join('memory-data')})", re.IGNORECASE)
# Bidirectional controls, zero-width spaces and marks, the tag block, and other invisible characters.
# The joiners U+200C and U+200D stay, because Persian and emoji need them.
_HIDDEN = re.compile(
    "[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")


def single_line(text: str) -> str:
    """Return a content as one line that is safe inside a block."""
    return _without_tags(" ⏎ ".join(filter(None, (line.strip() for line in _visible_lines(text)))))


def indented(text: str) -> str:
    """Return a content with its lines beneath each other, none of which begins at the margin."""
    return _without_tags("\n".join(f"  {line}".rstrip() for line in _visible_lines(text)))


def _visible_lines(text: str) -> list[str]:
    return [_without_hidden(line) for line in text.splitlines()]


def _without_hidden(line: str) -> str:
    if line.isprintable():  # nearly all lines, of hundreds in a context; what is removed is not printable
        return line
    return _CONTROL.sub("", _HIDDEN.sub("", line))


def _without_tags(text: str) -> str:
    if "<" not in text:
        return text
    return _FENCE.sub("\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}", text)


def fence(header: str, lines: list[str]) -> str:
    """Return a block: the header, then the lines inside the fence."""
    return "\n".join([header, OPEN, *lines, CLOSE])
