"""The words of a text, to compare texts of any language by."""

import re
import unicodedata
from itertools import pairwise

_WORD = re.compile(r"\w+")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff]+")


def of(text: str) -> set[str]:
    """Return the words in lower case; of Chinese and Japanese each two neighbouring characters."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    pairs = {first + second for run in _UNSPACED.findall(plain) for first, second in pairwise(run)}
    return pairs | set(_WORD.findall(_UNSPACED.sub(" ", plain)))
