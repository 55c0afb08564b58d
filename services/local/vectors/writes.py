"""Parse the JSON of each write into the engine's operation and the number of points that it names."""

from collections.abc import Callable
from typing import Any, NamedTuple

import qdrant_edge as edge

from services.local.vectors import filters, points, shape
from services.local.vectors.refusal import refused

_Operation = edge.UpdateOperation


class Write(NamedTuple):
    """One operation. `point_count` is the number of points that it names, or 1 if it has a filter."""

    operation: edge.UpdateOperation
    point_count: int


def upsert(body: Any) -> Write:
    """Insert or replace whole points."""
    fields = shape.mapping(body, "body", ("points", "batch"))
    if len(fields) != 1:
        shape.refuse("body", "must carry exactly one of points, batch")
    if "points" in fields:
        new_points = points.read_points(fields["points"], "points")
    else:
        new_points = points.read_batch(fields["batch"], "batch")
    return Write(_Operation.upsert_points(_require_some(new_points)), len(new_points))


def update_vectors(body: Any) -> Write:
    """Set vectors of existing points. Their other vectors and their payload are not changed."""
    items = shape.items(shape.mapping(body, "body", ("points",), required=("points",))["points"], "points")
    vectors = [points.read_point_vectors(item, f"points[{i}]") for i, item in enumerate(items)]
    return Write(_Operation.update_vectors(_require_some(vectors)), len(vectors))


def set_payload(body: Any) -> Write:
    """Set keys of the payload. The other keys are not changed."""
    supported = ("payload", "key", "points", "filter")
    fields = shape.mapping(body, "body", supported, required=("payload",))
    payload = shape.anything(fields["payload"], "payload")
    key = fields.get("key")
    with refused("key"):
        return _select_points(
            fields,
            lambda ids: _Operation.set_payload(ids, payload, key),
            lambda condition: _Operation.set_payload_by_filter(condition, payload, key),
        )


def delete_points(body: Any) -> Write:
    """Delete points. An id that does not exist is no error."""
    fields = shape.mapping(body, "body", ("points", "filter"))
    return _select_points(fields, _Operation.delete_points, _Operation.delete_points_by_filter)


def delete_vectors(body: Any) -> Write:
    """Delete the named vectors of points."""
    fields = shape.mapping(body, "body", ("points", "filter", "vector"), required=("vector",))
    names = shape.texts(fields["vector"], "vector")
    return _select_points(
        fields,
        lambda ids: _Operation.delete_vectors(ids, names),
        lambda condition: _Operation.delete_vectors_by_filter(condition, names),
    )


def _select_points(
    fields: dict[str, Any],
    by_ids: Callable[[list[Any]], edge.UpdateOperation],
    by_filter: Callable[[edge.Filter], edge.UpdateOperation],
) -> Write:
    if ("points" in fields) == ("filter" in fields):
        shape.refuse("body", "Either list of point ids or filter must be provided")
    if "filter" in fields:
        return Write(by_filter(filters.read(fields["filter"], "filter")), 1)
    ids = points.read_ids(fields["points"], "points")
    return Write(by_ids(_require_some(ids)), len(ids))


def _require_some(members: list[Any]) -> list[Any]:
    return members or shape.refuse("points", "Empty update request")
