"""Decide whether anything that was found has to do with the query: if nothing has, nothing is returned.

A search always finds its nearest vectors, and a long query shares a word with most texts. What was found
counts if the evidence of both channels together is enough: the best cosine must reach the floor, and the
share of the query's content words that one text has lowers it. The floor is the level that unrelated
pairs of records of this index rarely reach. It depends on the model and the kind of records, so it is
learnt from the index (`shared/search/index/floors.py`). Until there are enough records, a start value for the
model counts, and one word of the content is enough.

The constants were chosen on two sets of conversations of very different kinds, short chats and long
assistant messages, so that 98 % of the questions about a conversation still find something in it
(`python -m benchmarks.relevance`).
"""

from collections import Counter
from collections.abc import Sequence

from shared.search.floor import Floor
from shared.search.ranking.candidate import Candidate
from shared.search.text import bm25
from shared.search.text.tokenizer import tokenize, tokenize_query

SHARE_WITHOUT_COSINE = 1.3
"""The share of words that would replace the cosine altogether. It is above 1: words alone are not enough."""
SHARE_WITHOUT_EMBEDDER = 0.28
"""The share that is enough if no vector was compared."""
SHARE_WITHOUT_VECTOR = 0.5
"""The share that is enough for a record without a cosine, such as one that is not embedded yet."""
CUT_OFF = 0.3
"""The part of the floor below which a record does not count, even beside relevant ones."""
_JUDGED = 10


def select(query: str, candidates: Sequence[Candidate], floor: Floor) -> list[Candidate]:
    """Return the candidates that count; none if there is too little evidence that any is relevant.

    Neighbour turns, which no channel returned, are kept with the hits that they stand beside.
    """
    hits = [candidate for candidate in candidates if candidate.keyword or candidate.cosine is not None]
    if not _is_any_relevant(query, hits, floor):
        return []
    cut_off = CUT_OFF * floor.cosine
    return [c for c in candidates if c.keyword or c.cosine is None or c.cosine >= cut_off]


def is_match(candidate: Candidate, floor: Floor | None) -> bool:
    """Return whether a candidate is a hit by itself: by a word of the content, or by its cosine."""
    if candidate.keyword:
        return True
    return floor is not None and candidate.cosine is not None and candidate.cosine >= floor.cosine


def _is_any_relevant(query: str, hits: Sequence[Candidate], floor: Floor) -> bool:
    if not floor.is_learnt:
        return any(is_match(hit, floor) for hit in hits)
    cosine = max((hit.cosine for hit in hits if hit.cosine is not None), default=None)
    if cosine is not None and cosine >= floor.cosine:
        return True
    terms = tokenize_query(query)
    return any(_is_enough(_word_share(terms, hit.text), hit, cosine, floor) for hit in _best_by_keyword(hits))


def _is_enough(share: float, hit: Candidate, cosine: float | None, floor: Floor) -> bool:
    """Return whether a text with this share of the words is enough beside the best cosine of all hits."""
    if cosine is None:
        return share >= SHARE_WITHOUT_EMBEDDER
    if hit.cosine is None and share >= SHARE_WITHOUT_VECTOR:
        return True
    return cosine >= floor.cosine * (1 - share / SHARE_WITHOUT_COSINE)


def _best_by_keyword(hits: Sequence[Candidate]) -> list[Candidate]:
    found = [hit for hit in hits if hit.keyword]
    return sorted(found, key=lambda hit: -(hit.keyword or 0.0))[:_JUDGED]


def _word_share(terms: Sequence[str], text: str) -> float:
    """Return the share of the terms that a text has. Words of a long text weigh less."""
    words = tokenize(text)
    counts = Counter(words)
    weights = [min(bm25.term_weight(counts[term], len(words)), 1.0) for term in terms if term in counts]
    return sum(weights) / len(terms) if terms else 0.0
