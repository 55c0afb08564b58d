"""A part of a note and its halves: at the border between two sentences that is nearest to the middle."""

import re
from dataclasses import dataclass

_PRECEDING_LENGTH = 300
"""Characters of the text before a part that the model is shown, so that it can tell who "she" is."""
# The end of a sentence with its closing quotation marks, or the end of a line.
_BORDER = re.compile(
    "[.!?\u2026]+[\"'\u201d\u2019\u00bb)\\]]*\\s+|[\u3002\uff01\uff1f]+[\u300d\u300f\uff09]*|\n+"
)
_ABBREVIATION = re.compile(
    r"(?:\b|(?<=\.))(?:[^\W\d_]|mr|mrs|ms|dr|prof|st|no|nr|vs|etc|bzw|ca|usw|vgl|abs|art|inc|ltd|approx|dept|est"
    r"|fig|e\.g|i\.e|z\.b|d\.h)\.\s+$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class NotePart:
    """A part of a note's text, and the end of the text before it."""

    text: str
    preceding: str = ""

    def halves(self) -> tuple["NotePart", "NotePart"] | None:
        """Return the two halves, which together have the whole text; None for a single sentence."""
        middle = len(self.text) / 2
        borders = [match.end() for match in _BORDER.finditer(self.text) if self._divides(match)]
        if not borders:
            return None
        border = min(borders, key=lambda position: abs(position - middle))
        first, second = self.text[:border], self.text[border:]
        before_second = (self.preceding + first)[-_PRECEDING_LENGTH:]
        return NotePart(first, self.preceding), NotePart(second, before_second)

    def _divides(self, border: re.Match[str]) -> bool:
        """Tell whether there is text on both sides, and not just the dot of an abbreviation before it."""
        before, after = self.text[: border.end()], self.text[border.end() :]
        is_abbreviation = border[0][:1] == "." and _ABBREVIATION.search(before[-12:])
        return not is_abbreviation and bool(after.strip()) and bool(before.strip())
