"""BM25 in process, over a handful of texts: the desk, and what Postgres finds while the index is down.

The same words and weights as `sparse`, with the IDF of this handful alone. A handful has no useful
statistics of rarity (with one text every IDF would be the same), so nothing is ever scored zero that
holds a word of the query.
"""

import math
from collections import Counter
from collections.abc import Sequence

from shared.index import sparse
from shared.index.words import query_words, words


def score(query: str, texts: Sequence[str]) -> list[float]:
    """Return the BM25 score of each text; 0.0 if and only if it holds no word of the query."""
    wanted = query_words(query)
    counts = [Counter(words(text)) for text in texts]
    rarity = {term: _idf(sum(term in count for count in counts), len(texts)) for term in wanted}
    return [_score(count, rarity) for count in counts]


def _score(count: Counter[str], rarity: dict[str, float]) -> float:
    length = count.total()
    return sum(idf * sparse.weight(count[term], length) for term, idf in rarity.items() if term in count)


def _idf(holding: int, among: int) -> float:
    return math.log((among - holding + 0.5) / (holding + 0.5) + 1)
