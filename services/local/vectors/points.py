"""Convert points (ids, vectors and payloads) from JSON to the engine's objects and back."""

from typing import Any, TypeAlias
from uuid import UUID

import qdrant_edge as edge

from services.local.vectors import shape
from services.local.vectors.refusal import refused

PointId: TypeAlias = int | UUID


def read_ids(value: Any, at: str) -> list[PointId]:
    """Return the list of ids."""
    return [read_id(item, f"{at}[{i}]") for i, item in enumerate(shape.items(value, at))]


def read_id(value: Any, at: str) -> PointId:
    """Return the id, which is a UUID or a whole number."""
    if not isinstance(value, str):
        return shape.whole(value, at)
    try:
        return UUID(value)
    except ValueError:
        shape.refuse(at, f"{value} is not a valid point ID, valid values are an unsigned integer or a UUID")


def read_points(value: Any, at: str) -> list[edge.Point]:
    """Return the points of a request that lists whole points."""
    return [_point(item, f"{at}[{i}]") for i, item in enumerate(shape.items(value, at))]


def read_batch(value: Any, at: str) -> list[edge.Point]:
    """Return the points of a request with one list of ids, one of payloads, and one per named vector."""
    fields = shape.mapping(value, at, ("ids", "vectors", "payloads"), required=("ids", "vectors"))
    ids = shape.items(fields["ids"], f"{at}.ids")
    columns = shape.anything(fields["vectors"], f"{at}.vectors")
    payloads = shape.items(fields.get("payloads", [None] * len(ids)), f"{at}.payloads")
    for name, column in {**columns, "payloads": payloads}.items():
        if len(shape.items(column, f"{at}.{name}")) != len(ids):
            shape.refuse(f"{at}.{name}", "must be as long as ids")
    rows = [{name: column[i] for name, column in columns.items()} for i in range(len(ids))]
    return read_points(
        [
            {"id": id_, "vector": row, "payload": payload}
            for id_, row, payload in zip(ids, rows, payloads, strict=True)
        ],
        at,
    )


def _point(value: Any, at: str) -> edge.Point:
    fields = shape.mapping(value, at, ("id", "vector", "payload"), required=("id", "vector"))
    payload = shape.anything(fields.get("payload", {}), f"{at}.payload")
    with refused(at):
        return edge.Point(
            id=read_id(fields["id"], f"{at}.id"),
            vector=read_vectors(fields["vector"], f"{at}.vector"),
            payload=payload,
        )


def read_point_vectors(value: Any, at: str) -> edge.PointVectors:
    """Return a point's id with the vectors to set."""
    fields = shape.mapping(value, at, ("id", "vector"), required=("id", "vector"))
    with refused(at):
        return edge.PointVectors(
            id=read_id(fields["id"], f"{at}.id"), vector=read_vectors(fields["vector"], f"{at}.vector")
        )


def read_vectors(value: Any, at: str) -> dict[str, Any]:
    """Return the named vectors. A point may lack some of the collection's vectors."""
    if isinstance(value, list):
        shape.refuse(at, "a vector needs its name: collections here have named vectors only")
    return {name: read_vector(item, f"{at}.{name}") for name, item in shape.anything(value, at).items()}


def read_vector(value: Any, at: str) -> list[float] | edge.SparseVector:
    """Return one vector, from a list of numbers or from {indices, values}."""
    if isinstance(value, dict):
        return _sparse(value, at)
    if not isinstance(value, list) or (value and isinstance(value[0], list)):
        shape.refuse(at, "must be a list of numbers, or {indices, values}")
    return value


def _sparse(value: Any, at: str) -> edge.SparseVector:
    fields = shape.mapping(value, at, ("indices", "values"), required=("indices", "values"))
    indices = shape.items(fields["indices"], f"{at}.indices")
    if len(set(indices)) != len(indices):
        shape.refuse(f"{at}.indices", "must be unique")
    if len(shape.items(fields["values"], f"{at}.values")) != len(indices):
        shape.refuse(f"{at}.values", "must be the same length as indices")
    with refused(at):
        return edge.SparseVector(indices=indices, values=fields["values"])


def scored(point: edge.ScoredPoint) -> dict[str, Any]:
    """Return a hit as JSON."""
    return {"id": point.id, "version": point.version, "score": point.score, **_content(point)}


def record(point: edge.Record) -> dict[str, Any]:
    """Return a point as JSON."""
    return {"id": point.id, **_content(point)}


def _content(point: edge.ScoredPoint | edge.Record) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if point.payload is not None:
        content["payload"] = point.payload
    if isinstance(point.vector, dict):
        content["vector"] = {name: _vector_to_json(vector) for name, vector in point.vector.items()}
    return content


def _vector_to_json(vector: Any) -> Any:
    if isinstance(vector, edge.SparseVector):
        return {"indices": vector.indices, "values": vector.values}
    return vector
