"""BM25: sparse vectors for the index, and scores for texts without an index.

    score = Σ over query terms t:  IDF(t) · tf·(K1 + 1) / (tf + K1·(1 - B + B·length/TYPICAL_LENGTH))

The vector of a document contains everything but the IDF, which Qdrant multiplies in. So the weights must
not depend on other documents, and a constant replaces the average length of BM25 (Robertson and Zaragoza
2009). A small constant (30 words, a chat turn) with a low B suits both kinds of text that are stored.
Among short turns, the length hardly matters: its factor is between 0.6 and 1.4. A message of a
thousand words, which mentions many subjects, is reduced fully. On chats with short turns and on chats
with very long messages, this was better than the average length of the collection with any B.

The index of a term is the CRC-32 of its UTF-8 bytes. It is the same in all processes and versions, and
needs no vocabulary.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from zlib import crc32

from shared.search.text.tokenizer import tokenize, tokenize_query

K1 = 1.2
B = 0.4
TYPICAL_LENGTH = 30


@dataclass(frozen=True, slots=True)
class SparseTerms:
    """A sparse vector: distinct 32-bit term hashes in ascending order, and their weights."""

    indices: list[int]
    values: list[float]


def document_vector(text: str) -> SparseTerms:
    """Return the vector of a document, for a collection with the IDF modifier."""
    terms = tokenize(text)
    return _vector((term, term_weight(count, len(terms))) for term, count in Counter(terms).items())


def query_vector(text: str) -> SparseTerms:
    """Return the vector of a query: each of its terms once, with weight 1. It may be empty."""
    return _vector((term, 1.0) for term in tokenize_query(text))


def score_texts(query: str, texts: Sequence[str]) -> list[float]:
    """Return the BM25 score of each text; it is 0.0 if and only if the text has no term of the query.

    The IDF is that of `texts`.
    """
    counts = [Counter(tokenize(text)) for text in texts]
    idf_of_term = {
        term: _idf(sum(term in count for count in counts), len(texts)) for term in tokenize_query(query)
    }
    return [_score(count, idf_of_term) for count in counts]


def term_weight(count: int, length: int) -> float:
    """Return the score of a term without its IDF; it occurs `count` times among `length` terms."""
    return count * (K1 + 1) / (count + K1 * (1 - B + B * length / TYPICAL_LENGTH))


def _vector(weights: Iterable[tuple[str, float]]) -> SparseTerms:
    by_index: dict[int, float] = {}
    for term, value in weights:
        index = crc32(term.encode())
        by_index[index] = by_index.get(index, 0.0) + value
    indices = sorted(by_index)
    return SparseTerms(indices, [by_index[index] for index in indices])


def _score(count: Counter[str], idf_of_term: dict[str, float]) -> float:
    length = count.total()
    return sum(idf * term_weight(count[term], length) for term, idf in idf_of_term.items() if term in count)


def _idf(matching_texts: int, all_texts: int) -> float:
    return math.log((all_texts - matching_texts + 0.5) / (matching_texts + 0.5) + 1)
