"""Decide whether two memories are near-duplicates, by their words or by their vectors."""

import math
from collections.abc import Sequence
from operator import mul

from shared.search.text import tokenizer

MIN_SHARED_WORDS = 0.6
"""Jaccard index: the share of all words of both texts that is in both."""
MIN_COSINE = 0.88
"""Cosine similarity of the two vectors."""


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text, as the search index tokenizes them."""
    return frozenset(tokenizer.tokenize(text))


def words_are_similar(first: frozenset[str], second: frozenset[str]) -> bool:
    """Tell whether two texts consist of nearly the same words."""
    shared = len(first & second)
    return shared > 0 and shared >= MIN_SHARED_WORDS * (len(first) + len(second) - shared)


def vectors_are_similar(first: Sequence[float], second: Sequence[float]) -> bool:
    """Tell whether two vectors of the same model have nearly the same direction."""
    if len(first) != len(second):
        return False
    norms = math.hypot(*first) * math.hypot(*second)
    return norms > 0 and sum(map(mul, first, second)) >= MIN_COSINE * norms
