"""Count the values of JSON as it arrives, without parsing it.

Parsed, a value takes up to a hundred times the bytes that it has as text, so its bytes say little of that.
Each value comes after a comma or, as the first of its list or object, after a bracket.
"""

_OPENING = (b",", b"[", b"{")
_NOT_IN_UTF_8 = b"\x00"


class ValueCounter:
    """The number of values in the text so far, or a few more."""

    def __init__(self) -> None:
        self.count = 0
        self._is_in_string = False
        self._ends_in_escape = False

    def add(self, text: bytes) -> None:
        """Count the values that begin in the next part of the text."""
        if self._ends_in_escape:
            text = b"\\" + text
        text = text.replace(rb"\\", b"").replace(rb"\"", b"")
        self._ends_in_escape = text.endswith(b"\\")
        parts = text.split(b'"')
        outside = b"".join(parts[self._is_in_string :: 2])
        if len(parts) % 2 == 0:
            self._is_in_string = not self._is_in_string
        # The parser reads UTF-16 too, where a byte may look like a quotation mark and be half of a letter.
        counted = text if _NOT_IN_UTF_8 in text else outside
        self.count += sum(counted.count(mark) for mark in _OPENING)
