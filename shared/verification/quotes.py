"""Tell whether a quote stands in a text: case, the width of letters, white space and line breaks aside."""

import re
import unicodedata

from shared.foundation import prompt_safety

_BLANKS = re.compile(r"\s+")


def normalised(text: str) -> str:
    """Return a text as quotes are compared with it: as a prompt shows it, in one line and in lower case."""
    shown = prompt_safety.single_line(text).replace("⏎", " ")
    return _BLANKS.sub(" ", unicodedata.normalize("NFKC", shown)).strip().casefold()


def stands_in(quote: str, normalised_text: str) -> bool:
    """Tell whether a quote with a letter or a digit stands in a text that `normalised` has returned."""
    words = normalised(quote)
    return any(character.isalnum() for character in words) and words in normalised_text
