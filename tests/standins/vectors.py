"""Compute vectors without a model: texts with common words are similar, others are nearly orthogonal.

The vector of a word has components of plus and minus one, derived from the hash of the word. The vector
of a text is the sum over its words, scaled to length 1. It is the same in every process and on every
machine. In d dimensions, the cosine of unrelated texts has the mean 0 and the deviation 1/sqrt(d).
"""

import re
from functools import lru_cache
from hashlib import shake_128

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_WORD = re.compile(r"\w+")


def embed(text: str, dimension: int, space: str = "") -> list[float]:
    """Return the vector of `text`; another `space` gives other vectors, as another model would."""
    words = _WORD.findall(text.lower()) or [text]
    total = np.sum([_word_vector(word, dimension, space) for word in words], axis=0)
    length = float(np.linalg.norm(total))
    # In few dimensions, words may cancel each other out; a zero vector must appear only if programmed.
    if length == 0:
        return embed(f"{text}.", dimension, f"{space}.")
    return [float(number) for number in total / length]


@lru_cache(maxsize=50_000)
def _word_vector(word: str, dimension: int, space: str) -> Array:
    digest = shake_128(f"{space}\n{word}".encode("utf-8", "surrogatepass")).digest((dimension + 7) // 8)
    bits = np.unpackbits(np.frombuffer(digest, np.uint8))[:dimension]
    signs: Array = bits.astype(np.float64) * 2 - 1
    return signs
