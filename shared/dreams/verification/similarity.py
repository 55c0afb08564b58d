"""When two entries are near-duplicates: by their words, or by their vectors."""

import math
from collections.abc import Sequence
from operator import mul

from shared.search.text import tokenizer

MIN_SHARED_WORDS = 0.6
"""Jaccard: of all words of both texts, this share is in both."""
MIN_COSINE = 0.88


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text as the index knows them."""
    return frozenset(tokenizer.tokenize(text))


def words_are_similar(one: frozenset[str], other: frozenset[str]) -> bool:
    """Tell whether two texts say nearly the same in nearly the same words."""
    shared = len(one & other)
    return shared > 0 and shared >= MIN_SHARED_WORDS * (len(one) + len(other) - shared)


def vectors_are_similar(one: Sequence[float], other: Sequence[float]) -> bool:
    """Tell whether two vectors of one model point nearly the same way."""
    if len(one) != len(other):
        return False
    norms = math.hypot(*one) * math.hypot(*other)
    return norms > 0 and sum(map(mul, one, other)) >= MIN_COSINE * norms
