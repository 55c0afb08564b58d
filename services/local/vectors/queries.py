"""Parse the JSON of search, scroll, count and retrieve requests into the engine's requests."""

from typing import Any, NamedTuple

import qdrant_edge as edge

from services.local.vectors import filters, points, shape
from services.local.vectors.refusal import refused

_QUERY = (
    "query",
    "using",
    "filter",
    "params",
    "score_threshold",
    "limit",
    "offset",
    "with_vector",
    "with_payload",
)
_SCROLL = ("offset", "limit", "filter", "with_payload", "with_vector")
_PARAMS = ("hnsw_ef", "exact", "indexed_only", "idf")
_DEFAULT_LIMIT = 10


class Retrieval(NamedTuple):
    """The points to fetch, and which of their fields."""

    ids: list[points.PointId]
    with_payload: Any
    with_vector: bool | list[str]


def read_batch(body: Any) -> list[edge.QueryRequest]:
    """Return the search requests of a batch."""
    searches = shape.mapping(body, "body", ("searches",), required=("searches",))["searches"]
    return [read(item, f"searches[{i}]") for i, item in enumerate(shape.items(searches, "searches"))]


def read(body: Any, at: str = "body") -> edge.QueryRequest:
    """Return a search for the nearest points by a named vector, or without a query for points by filter."""
    fields = shape.mapping(body, at, _QUERY)
    threshold = fields.get("score_threshold")
    return edge.QueryRequest(
        query=_query(fields, at),
        filter=filters.read_optional(fields.get("filter"), f"{at}.filter"),
        params=_params(fields.get("params", {}), f"{at}.params"),
        score_threshold=None if threshold is None else shape.number(threshold, f"{at}.score_threshold"),
        limit=shape.whole(fields.get("limit", _DEFAULT_LIMIT), f"{at}.limit", least=1),
        offset=shape.whole(fields.get("offset", 0), f"{at}.offset"),
        with_vector=_vector_selector(fields.get("with_vector", False), f"{at}.with_vector"),
        with_payload=_payload_selector(fields.get("with_payload", False), f"{at}.with_payload"),
    )


def _query(fields: dict[str, Any], at: str) -> Any:
    if fields.get("query") is None and fields.get("using") is None:
        return None
    shape.mapping(fields, at, _QUERY, required=("query", "using"))
    return _nearest(fields["query"], shape.text(fields["using"], f"{at}.using"), f"{at}.query")


def _nearest(value: Any, using: str, at: str) -> Any:
    if isinstance(value, dict) and "indices" not in value:
        value = shape.mapping(value, at, ("nearest",), required=("nearest",))["nearest"]
    with refused(at):
        return edge.Query.Nearest(points.read_vector(value, at), using=using)


def _params(value: Any, at: str) -> edge.SearchParams:
    fields = shape.mapping(value, at, _PARAMS)
    if fields.get("indexed_only"):
        shape.refuse(f"{at}.indexed_only", "is not supported here: there is no vector graph")
    ef = fields.get("hnsw_ef")
    return edge.SearchParams(
        hnsw_ef=None if ef is None else shape.whole(ef, f"{at}.hnsw_ef"),
        exact=shape.flag(fields.get("exact", False), f"{at}.exact"),
        idf=_idf(fields.get("idf", "global"), f"{at}.idf"),
    )


def _idf(value: Any, at: str) -> edge.IdfParams | None:
    if value == "global":
        return None
    fields = shape.mapping(value, at, ("corpus",), required=("corpus",))
    return edge.IdfParams(corpus=filters.read(fields["corpus"], f"{at}.corpus"))


def read_scroll(body: Any) -> edge.ScrollRequest:
    """Return a scroll request, in the order of ids."""
    fields = shape.mapping(body, "body", _SCROLL)
    offset = fields.get("offset")
    return edge.ScrollRequest(
        offset=None if offset is None else points.read_id(offset, "offset"),
        limit=shape.whole(fields.get("limit", _DEFAULT_LIMIT), "limit", least=1),
        filter=filters.read_optional(fields.get("filter"), "filter"),
        with_payload=_payload_selector(fields.get("with_payload", True), "with_payload"),
        with_vector=_vector_selector(fields.get("with_vector", False), "with_vector"),
    )


def read_count(body: Any) -> edge.CountRequest:
    """Return a count request. The count is exact even if `exact` is false."""
    fields = shape.mapping(body, "body", ("filter", "exact"))
    return edge.CountRequest(exact=True, filter=filters.read_optional(fields.get("filter"), "filter"))


def read_retrieval(body: Any) -> Retrieval:
    """Return the ids to fetch and which of their fields to return."""
    fields = shape.mapping(body, "body", ("ids", "with_payload", "with_vector"), required=("ids",))
    return Retrieval(
        points.read_ids(fields["ids"], "ids"),
        _payload_selector(fields.get("with_payload", True), "with_payload"),
        _vector_selector(fields.get("with_vector", False), "with_vector"),
    )


def _vector_selector(value: Any, at: str) -> bool | list[str]:
    return value if isinstance(value, bool) else shape.texts(value, at)


def _payload_selector(value: Any, at: str) -> Any:
    if not isinstance(value, dict):
        return value if isinstance(value, bool) else shape.texts(value, at)
    fields = shape.mapping(value, at, ("include", "exclude"))
    if len(fields) != 1:
        shape.refuse(at, "must carry exactly one of include, exclude")
    (kind, paths), *_ = fields.items()
    build = {"include": edge.PayloadSelector.Include, "exclude": edge.PayloadSelector.Exclude}[kind]
    with refused(at):
        return build(shape.texts(paths, f"{at}.{kind}"))
