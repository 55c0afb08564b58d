"""Vectors without a model: texts that share words are near, all others nearly orthogonal.

Every word is a pseudo-random vector of plus and minus ones, drawn from its hash; a text is the sum
of its words, scaled to length 1. The same in every process and on every machine. At dimension d
the cosine of unrelated texts scatters around 0 by 1/sqrt(d).
"""

import re
from functools import lru_cache
from hashlib import shake_128

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_WORD = re.compile(r"\w+")


def embed(text: str, dimension: int, space: str = "") -> list[float]:
    """Return the vector of `text`; another `space` is what another model would give."""
    words = _WORD.findall(text.lower()) or [text]
    total = np.sum([_word(word, dimension, space) for word in words], axis=0)
    length = float(np.linalg.norm(total))
    # Words may cancel out exactly at tiny dimensions; a zero vector must only come when asked for.
    if length == 0:
        return embed(f"{text}.", dimension, f"{space}.")
    return [float(number) for number in total / length]


@lru_cache(maxsize=50_000)
def _word(word: str, dimension: int, space: str) -> Array:
    digest = shake_128(f"{space}\n{word}".encode("utf-8", "surrogatepass")).digest((dimension + 7) // 8)
    bits = np.unpackbits(np.frombuffer(digest, np.uint8))[:dimension]
    signs: Array = bits.astype(np.float64) * 2 - 1
    return signs
