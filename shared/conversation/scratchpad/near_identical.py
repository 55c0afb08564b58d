"""Decide whether two texts are near-identical, so that the second counts as a repetition of the first.

They are if they have the same words in the same order. What doesn't count is the case, a bullet, the
punctuation around a word, an s at its end (a plural, or "prefer" and "prefers"), and the few words that
change nothing ("the", "please"). Every other difference counts, because the text of a repetition is not
stored: names, numbers and their signs, negations, tenses, accents, the order of words, a question mark.
"""

import re
import unicodedata

_BULLET = re.compile(r"\s*[-*\u2022]\s+")
_LIGHT_WORDS = frozenset({"a", "an", "the", "please", "also", "just", "really", "very", "quite", "actually"})
_AROUND_WORDS = ".,;:!\"'()[]{}<>*_`\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u2026\u00a1"
_MIN_STEM = 3
"""Letters before an s at the end of a word that may be left out: "is" and "gas" stay as they are."""


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text by which it is compared; of a text without any, the text itself."""
    folded = unicodedata.normalize("NFC", text).casefold()
    words = (_without_plural(word.strip(_AROUND_WORDS)) for word in _without_bullet(folded).split())
    return tuple(word for word in words if word and word not in _LIGHT_WORDS) or (" ".join(folded.split()),)


def are_near_identical(first: str, second: str) -> bool:
    """Tell whether two texts have the same words."""
    return words_of(first) == words_of(second)


def _without_bullet(text: str) -> str:
    bullet = _BULLET.match(text)
    return text[bullet.end() :] if bullet else text


def _without_plural(word: str) -> str:
    stem = word.removesuffix("s")
    return stem if stem.isalpha() and len(stem) >= _MIN_STEM and not stem.endswith("s") else word
