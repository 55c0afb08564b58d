"""Put stored text into a prompt as data, inside a fence that no text can close.

A memory may hold anything, even text that looks like a header, like the line of another memory or
like an instruction to the model. So each content is put on one line (line breaks become ⏎), or its lines
are indented; characters that hide or reorder text are removed, and the tags of the fence are made harmless.
Text that merely reads like an instruction is not filtered, because such a filter protects nobody.
"""

import re
import unicodedata

from shared.foundation.validation import is_blank, visible_characters

_TAG_NAME = "memory-data"
OPEN, CLOSE = f"<{_TAG_NAME}>", f"</{_TAG_NAME}>"
_FENCE = re.compile(f"<(?=/?{_TAG_NAME})")
_TAG_STARTS = re.compile("[<\uff1c\ufe64]")
_HYPHENS = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212\ufe63\uff0d", "-"))
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
    """Make the tags of the fence harmless, also with spaces, invisible characters or wide letters in them."""
    if not _TAG_STARTS.search(text) or _TAG_NAME not in _folded(visible_characters(text)):
        return text
    letters, places = _shown_letters(text)
    characters = list(text)
    for match in _FENCE.finditer(letters):
        characters[places[match.start()]] = "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}"
    return "".join(characters)


def _shown_letters(text: str) -> tuple[str, list[int]]:
    """Return what a text shows, folded and without white space, and the place of each of its characters."""
    letters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        if not is_blank(character):
            letters.append(_folded(character))
            places += [place] * len(letters[-1])
    return "".join(letters), places


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).translate(_HYPHENS).casefold()


def fence(header: str, lines: list[str]) -> str:
    """Return a block: the header, then the lines inside the fence."""
    return "\n".join([header, OPEN, *lines, CLOSE])
