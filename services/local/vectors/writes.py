"""Writing: the JSON of each change as the engine's operation, with the number of points it names."""

from collections.abc import Callable
from typing import Any, NamedTuple

import qdrant_edge as edge

from services.local.vectors import filters, points, shape
from services.local.vectors.refusal import refused

_Operation = edge.UpdateOperation


class Write(NamedTuple):
    """One operation; `size` is how many points it names (1 when a filter does)."""

    operation: edge.UpdateOperation
    point_count: int


def upsert(body: Any) -> Write:
    """Insert or replace whole points."""
    fields = shape.mapping(body, "body", ("points", "batch"))
    if len(fields) != 1:
        shape.refuse("body", "must carry exactly one of points, batch")
    if "points" in fields:
        read = points.read_points(fields["points"], "points")
    else:
        read = points.read_batch(fields["batch"], "batch")
    return Write(_Operation.upsert_points(_some(read)), len(read))


def update_vectors(body: Any) -> Write:
    """Set vectors of points that exist; their other vectors and their payload stay."""
    given = shape.items(shape.mapping(body, "body", ("points",), required=("points",))["points"], "points")
    read = [points.read_point_vectors(item, f"points[{i}]") for i, item in enumerate(given)]
    return Write(_Operation.update_vectors(_some(read)), len(read))


def set_payload(body: Any) -> Write:
    """Set these keys of the payload; the others stay."""
    known = ("payload", "key", "points", "filter")
    fields = shape.mapping(body, "body", known, required=("payload",))
    payload = shape.anything(fields["payload"], "payload")
    key = fields.get("key")
    with refused("key"):
        return _selected(
            fields,
            lambda ids: _Operation.set_payload(ids, payload, key),
            lambda where: _Operation.set_payload_by_filter(where, payload, key),
        )


def delete_points(body: Any) -> Write:
    """Delete points; ids that do not exist are no error."""
    fields = shape.mapping(body, "body", ("points", "filter"))
    return _selected(fields, _Operation.delete_points, _Operation.delete_points_by_filter)


def delete_vectors(body: Any) -> Write:
    """Take the named vectors off points."""
    fields = shape.mapping(body, "body", ("points", "filter", "vector"), required=("vector",))
    names = shape.texts(fields["vector"], "vector")
    return _selected(
        fields,
        lambda ids: _Operation.delete_vectors(ids, names),
        lambda where: _Operation.delete_vectors_by_filter(where, names),
    )


def _selected(
    fields: dict[str, Any],
    by_ids: Callable[[list[Any]], edge.UpdateOperation],
    by_filter: Callable[[edge.Filter], edge.UpdateOperation],
) -> Write:
    if ("points" in fields) == ("filter" in fields):
        shape.refuse("body", "Either list of point ids or filter must be provided")
    if "filter" in fields:
        return Write(by_filter(filters.read(fields["filter"], "filter")), 1)
    ids = points.read_ids(fields["points"], "points")
    return Write(by_ids(_some(ids)), len(ids))


def _some(named: list[Any]) -> list[Any]:
    return named or shape.refuse("points", "Empty update request")
