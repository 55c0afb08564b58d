"""Find what was written a moment ago, which the keyword channel may leave out for a second or two.

While a Qdrant server merges its segments, a sparse query can miss points whose write it has acknowledged,
although the same points are found by their payload. So every search also asks for the newest points by
`written_at`, in the same batch, with the keyword weights that are stored with them, and the keyword channel
for the best of these points alone. Those that match but that it did not return either are scored here.

The score of a keyword hit is the sum of IDF · weight over the terms of the query. The weights of a hit
can be read, so its score is an equation for the IDFs. The equations of some hits are solved here, because
the server does not report an IDF. The scores of missed points are then comparable with those of the hits.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from shared.infra.qdrant import Json, Qdrant
from shared.search.index import filters
from shared.search.index.filters import Condition
from shared.search.index.points import KEYWORDS

MAX_RECENT = 200
"""Points that are read at most. Of more that were written within the time, some only the index finds."""
SOLVED_HITS = 30
"""Hits whose weights are read to compute the IDFs."""
_ROUNDS = 20
_UNKNOWN_IDF = 1.0
Weights = Mapping[int, float]
"""The keyword weights of a text by the index of the term."""


def conditions(others: Sequence[Condition], seconds: float) -> Condition:
    """Return the condition that a point meets the others and was written within the last `seconds`."""
    since = datetime.now(UTC) - timedelta(seconds=seconds)
    return filters.all_of([*others, filters.is_later_than("written_at", since)])


def build_request(is_recent: Condition) -> Json:
    """Return the request for the recent points with their keyword weights."""
    return {
        "filter": is_recent,
        "limit": MAX_RECENT,
        "with_payload": ["record_id", "version"],
        "with_vector": [KEYWORDS],
    }


def matching_weights(points: Sequence[Json], terms: Sequence[int]) -> dict[tuple[str, int], Weights]:
    """Return the weights of those points that have a term of the query, by (record id, version)."""
    by_key = {
        (point["payload"]["record_id"], point["payload"]["version"]): _weights(point.get("vector"), terms)
        for point in points
        if point.get("payload")
    }
    return {key: weights for key, weights in by_key.items() if weights}


async def read_weights(
    qdrant: Qdrant, collection: str, point_ids: Sequence[str], terms: Sequence[int]
) -> dict[str, Weights]:
    """Return the weights of points for the terms of the query, by point id."""
    if not point_ids:
        return {}
    body = {"ids": list(point_ids), "with_payload": False, "with_vector": [KEYWORDS]}
    async with qdrant.call_guard():
        records = await qdrant.call("POST", f"collections/{collection}/points", body)
    return {str(record["id"]): _weights(record.get("vector"), terms) for record in records}


def score(weights: Weights, idfs: Mapping[int, float]) -> float:
    """Return the keyword score of a text."""
    return sum(idfs[term] * weight for term, weight in weights.items())


def solve_idfs(hits: Sequence[tuple[Weights, float]], terms: Sequence[int]) -> dict[int, float]:
    """Return the IDF of each term, from the weights and the scores of hits.

    A term that no hit has is rare, so it gets the highest IDF of the others.
    """
    idfs = dict.fromkeys(terms, _UNKNOWN_IDF)
    known_terms = {term for weights, _ in hits for term in weights}
    for _ in range(_ROUNDS):
        for term in known_terms:
            idfs[term] = _best_idf(term, hits, idfs)
    highest = max((idfs[term] for term in known_terms), default=_UNKNOWN_IDF)
    return {term: idf if term in known_terms else highest for term, idf in idfs.items()}


def _best_idf(term: int, hits: Sequence[tuple[Weights, float]], idfs: Mapping[int, float]) -> float:
    """Return the IDF of a term with the least squared error, while those of the other terms are kept."""
    product = square = 0.0
    for weights, hit_score in hits:
        if term in weights:
            rest = hit_score - score(weights, idfs) + idfs[term] * weights[term]
            product += weights[term] * rest
            square += weights[term] ** 2
    return max(product / square, 0.0)


def _weights(vectors: Json | None, terms: Sequence[int]) -> Weights:
    vector = (vectors or {}).get(KEYWORDS)
    if vector is None:
        return {}
    weights = dict(zip(vector["indices"], vector["values"], strict=True))
    return {term: weights[term] for term in terms if term in weights}
