"""Parse a collection's schema: named dense and sparse vectors, and payload indexes.

The catalog stores the JSON that created a collection, and "get collection" returns it.
"""

from typing import Any

import qdrant_edge as edge

from services.local.vectors import shape
from services.local.vectors.writes import Write

_DISTANCES = {
    "Cosine": edge.Distance.Cosine,
    "Dot": edge.Distance.Dot,
    "Euclid": edge.Distance.Euclid,
    "Manhattan": edge.Distance.Manhattan,
}
# Accepted without effect: they change how fast a server responds and not what it returns.
_TUNING = ("hnsw_config", "optimizers_config", "on_disk_payload", "wal_config")
_REPLICATION = ("shard_number", "replication_factor", "write_consistency_factor")

_INDEXES = {
    "keyword": (edge.KeywordIndexParams, ("is_tenant",)),
    "uuid": (edge.UuidIndexParams, ("is_tenant",)),
    "integer": (edge.IntegerIndexParams, ("lookup", "range", "is_principal")),
    "float": (edge.FloatIndexParams, ("is_principal",)),
    "datetime": (edge.DatetimeIndexParams, ("is_principal",)),
    "bool": (edge.BoolIndexParams, ()),
}
_INDEX_TUNING = ("on_disk", "enable_hnsw")


def read(body: Any) -> dict[str, Any]:
    """Return `{vectors, sparse_vectors}` of a create request; raise Invalid for unsupported fields."""
    fields = shape.mapping(body, "body", ("vectors", "sparse_vectors", *_TUNING, *_REPLICATION))
    for name in _REPLICATION:
        if fields.get(name, 1) != 1:
            shape.refuse(name, "must be 1: this store is a single process")
    dense = shape.anything(fields.get("vectors", {}), "vectors")
    if "size" in dense:
        shape.refuse("vectors", "collections here have named vectors only")
    sparse = shape.anything(fields.get("sparse_vectors", {}), "sparse_vectors")
    return {
        "vectors": {name: _dense(value, f"vectors.{name}") for name, value in dense.items()},
        "sparse_vectors": {name: _sparse(value, f"sparse_vectors.{name}") for name, value in sparse.items()},
    }


def _dense(value: Any, at: str) -> dict[str, Any]:
    supported = ("size", "distance", "on_disk", "hnsw_config")
    fields = shape.mapping(value, at, supported, required=("size", "distance"))
    shape.whole(fields["size"], f"{at}.size", least=1)
    return {
        "size": fields["size"],
        "distance": shape.choice(fields["distance"], f"{at}.distance", _DISTANCES),
    }


def _sparse(value: Any, at: str) -> dict[str, Any]:
    fields = shape.mapping(value, at, ("modifier", "index"))
    shape.mapping(fields.get("index", {}), f"{at}.index", ("on_disk", "full_scan_threshold"))
    shape.choice(fields.get("modifier", "none"), f"{at}.modifier", ("idf", "none"))
    return {"modifier": fields["modifier"]} if "modifier" in fields else {}


def engine_config(schema: dict[str, Any]) -> edge.EdgeConfig:
    """Return the shard's configuration: one segment and no vector graph (see the package's docstring)."""
    return edge.EdgeConfig(
        vectors={
            name: edge.EdgeVectorParams(size=vector["size"], distance=_DISTANCES[vector["distance"]])
            for name, vector in schema["vectors"].items()
        },
        sparse_vectors={
            name: edge.EdgeSparseVectorParams(
                modifier=edge.Modifier.Idf if vector.get("modifier") == "idf" else None
            )
            for name, vector in schema["sparse_vectors"].items()
        },
        hnsw_config=edge.HnswIndexConfig(m=0, payload_m=0, ef_construct=100, full_scan_threshold=10_000),
        optimizers=edge.EdgeOptimizersConfig(
            indexing_threshold=10**9, max_segment_size=10**9, default_segment_number=1
        ),
        # Search threads divide the segments among them, and there is one segment. The default is 8 threads.
        max_search_threads=1,
    )


def read_index(body: Any) -> Write:
    """Return the operation that creates a payload index."""
    fields = shape.mapping(body, "body", ("field_name", "field_schema"), ("field_name", "field_schema"))
    field_schema = fields["field_schema"]
    if isinstance(field_schema, str):
        options: dict[str, Any] = {"type": field_schema}
    else:
        options = dict(shape.anything(field_schema, "field_schema"))
    kind = shape.choice(options.pop("type", None), "field_schema", _INDEXES)
    params, supported = _INDEXES[kind]
    flags = shape.mapping(options, "field_schema", (*supported, *_INDEX_TUNING))
    options_set = {name: shape.flag(value, name) for name, value in flags.items() if name in supported}
    name = shape.text(fields["field_name"], "field_name")
    return Write(edge.UpdateOperation.create_field_index(name, params(**options_set)), 1)
