"""The requests of one channel in a batch to Qdrant."""

from collections.abc import Mapping, Sequence
from typing import Any

from shared.infra.embedder import Vector
from shared.infra.qdrant import Json
from shared.search.index import filters
from shared.search.index.filters import Condition
from shared.search.index.points import KEYWORDS

SparseVector = dict[str, Any]
"""The keyword weights of a query, as Qdrant's JSON: `indices` and `values`."""


def evidence_requests(
    vectors: Mapping[str, Vector | SparseVector], tenant: str, conditions: Sequence[Condition], max_hits: int
) -> list[tuple[str, Json]]:
    """Return a request per channel for the records that stand for others, if conditions ask for them."""
    if not conditions:
        return []
    is_of_tenant = filters.tenant_condition(tenant)
    corpus = {"idf": {"corpus": filters.all_of(is_of_tenant)}}
    is_evidence = filters.all_of([*is_of_tenant, *conditions])
    return [
        (stage, channel_request(stage, vector, is_evidence, max_hits, corpus if stage == KEYWORDS else None))
        for stage, vector in vectors.items()
    ]


def channel_request(
    stage: str, vector: Vector | SparseVector, point_filter: Condition, limit: int, params: Json | None
) -> Json:
    """Return the request for the best points of a channel that meet a condition."""
    return {
        "query": vector,
        "using": stage,
        "filter": point_filter,
        "limit": limit,
        "with_payload": ["record_id", "version"],
    } | ({"params": params} if params else {})
