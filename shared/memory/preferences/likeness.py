"""Decide whether a situation is like the one that a preference describes: yes or no, a pure function.

A search finds its nearest texts whatever they say, so both channels are evidence: half of the words of the
shorter text, or a cosine that unrelated texts don't reach, or less of both together.
"""

from shared.search.floor import Floor
from shared.search.text.tokenizer import tokenize_query

MIN_SHARED_WORDS = 0.5
"""The share of the words of the shorter text that is enough whatever the cosine."""
MIN_COSINE = 0.5
"""The cosine that is enough whatever the words, if the level of unrelated texts is not above it."""
MIN_SHARED_WORDS_BESIDE_COSINE = 0.25
"""The share of words that is enough beside a cosine above the level of unrelated texts."""
_MIN_WORDS = 2
"""The words that must be in both, unless one of them has only one."""
# Descriptions of situations begin with such words, whatever they are about.
_FRAME = frozenset(
    tokenize_query("a user or customer asks, wants, wishes, needs, requests, says something or someone")
)


def is_alike(situation: str, description: str, cosine: float | None, floor: Floor | None) -> bool:
    """Tell whether a situation is like a described one.

    `cosine` is that of both texts, None if it is not known; `floor` is the level of unrelated texts.
    """
    share = _shared_words(_content_words(situation), _content_words(description))
    if share >= MIN_SHARED_WORDS:
        return True
    if cosine is None or floor is None or cosine < floor.cosine:
        return False
    return cosine >= MIN_COSINE or share >= MIN_SHARED_WORDS_BESIDE_COSINE


def _content_words(text: str) -> frozenset[str]:
    words = frozenset(tokenize_query(text))
    return words - _FRAME or words


def _shared_words(first: frozenset[str], second: frozenset[str]) -> float:
    shortest = min(len(first), len(second))
    shared = len(first & second)
    return shared / shortest if shortest and shared >= min(_MIN_WORDS, shortest) else 0.0
