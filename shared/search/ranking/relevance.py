"""Decide whether anything that was found has to do with the query: if nothing has, nothing is returned.

Contexts are judged so; an explicit search has no floor, and returns what is nearest. A search always finds
its nearest vectors, and a long query shares a word with most texts. So the evidence of both channels
together must be enough: the best cosine must reach a minimum, which falls with the share of the query's
content words that one text has:

    minimum = floor · (SHARE_WITHOUT_COSINE - share) / (SHARE_WITHOUT_COSINE - SHARE_WITHOUT_EFFECT)

It is at most the floor, and from SHARE_WITHOUT_COSINE on there is none.

A name counts as much as NAME_WEIGHT other words, because a memory that has never heard of a person has
nothing about them. The floor is the level that unrelated pairs of records of this index rarely reach. It
depends on the model and the kind of records, so it is learnt from the index
(`shared/search/index/floors.py`), and at most a start value for the model. Until there are enough records,
the start value counts, and one word of the content is enough.

If something is relevant, all candidates are ranked, and only records that are very far from the query are
left out of the result. Left out before the ranking, they changed its scale and cost evidence.

The form and the constants were chosen on two sets of conversations of very different kinds, short chats and
long assistant messages, so that 98 % of the questions about a conversation still find something in it
(`python -m benchmarks.relevance`). `benchmarks/RESULTS.md` has the other rules that were tried.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from shared.search.floor import Floor
from shared.search.ranking.candidate import Candidate
from shared.search.ranking.query_analysis import capitalized_words
from shared.search.text import bm25
from shared.search.text.tokenizer import tokenize, tokenize_query

NAME_WEIGHT = 5.0
"""How many other words a name counts for. Beside an unknown name, two known words are just enough for a
search without an embedder (2 of 7)."""
SHARE_WITHOUT_EFFECT = 0.25
"""The share of words up to which the best cosine must reach the whole floor."""
SHARE_WITHOUT_COSINE = 0.75
"""The share of words that is enough whatever the cosine."""
SHARE_WITHOUT_EMBEDDER = 0.28
"""The share that is enough if no vector was compared."""
SHARE_WITHOUT_VECTOR = 0.5
"""The share that is enough for a record without a cosine, such as one that is not embedded yet."""
CUT_OFF = 0.3
"""The part of the floor below which a record does not count, even beside relevant ones."""
_JUDGED = 5
"""Hits, the best of the keyword channel, whose words are compared. Ten took twice the time, with no gain."""


def is_any_relevant(query: str, candidates: Sequence[Candidate], floor: Floor) -> bool:
    """Return whether there is enough evidence that any candidate is relevant.

    Neighbour turns, which no channel returned, are no evidence.
    """
    hits = [candidate for candidate in candidates if candidate.keyword or candidate.cosine is not None]
    if not floor.is_learnt:
        return any(is_match(hit, floor) for hit in hits)
    cosine = max((hit.cosine for hit in hits if hit.cosine is not None), default=None)
    if cosine is not None and cosine >= floor.cosine:
        return True
    weights = _term_weights(query)
    return any(
        _is_enough(_word_share(weights, hit.text), hit, cosine, floor) for hit in _best_by_keyword(hits)
    )


def find_far(candidates: Sequence[Candidate], floor: Floor) -> set[int]:
    """Return the positions of those that have nothing to do with the query, even if others are relevant."""
    return {
        position
        for position, candidate in enumerate(candidates)
        if candidate.cosine is not None and is_far(candidate.cosine, floor) and not candidate.keyword
    }


def is_far(cosine: float, floor: Floor) -> bool:
    """Return whether a record that only its vector found has nothing to do with the query."""
    return cosine < CUT_OFF * floor.cosine


def is_match(candidate: Candidate, floor: Floor | None) -> bool:
    """Return whether a candidate is a hit by itself: by a word of the content, or by its cosine."""
    if candidate.keyword:
        return True
    return floor is not None and candidate.cosine is not None and candidate.cosine >= floor.cosine


def _is_enough(share: float, hit: Candidate, cosine: float | None, floor: Floor) -> bool:
    """Return whether a text with this share of the words is enough beside the best cosine of all hits."""
    if cosine is None:
        return share >= SHARE_WITHOUT_EMBEDDER
    if hit.cosine is None and share >= SHARE_WITHOUT_VECTOR:
        return True
    part_of_floor = (SHARE_WITHOUT_COSINE - share) / (SHARE_WITHOUT_COSINE - SHARE_WITHOUT_EFFECT)
    return part_of_floor <= 0 or cosine >= floor.cosine * part_of_floor


def word_share(query: str, text: str) -> float:
    """Return the share of a query's content words that a text has, in 0..1; a name counts for several."""
    return _word_share(_term_weights(query), text)


def _best_by_keyword(hits: Sequence[Candidate]) -> list[Candidate]:
    found = [hit for hit in hits if hit.keyword]
    return sorted(found, key=lambda hit: -(hit.keyword or 0.0))[:_JUDGED]


def _term_weights(query: str) -> dict[str, float]:
    """Return how much each term of the query counts."""
    names = {term for word in capitalized_words(query) for term in tokenize(word)}
    return {term: NAME_WEIGHT if term in names else 1.0 for term in tokenize_query(query)}


def _word_share(weights: Mapping[str, float], text: str) -> float:
    """Return the weighted share of the terms that a text has. Words of a long text count less."""
    words = tokenize(text)
    counts = Counter(words)
    found = (
        weight * min(bm25.term_weight(counts[term], len(words)), 1.0)
        for term, weight in weights.items()
        if term in counts
    )
    return sum(found) / sum(weights.values()) if weights else 0.0
