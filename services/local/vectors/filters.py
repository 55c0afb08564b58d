"""Parse Qdrant's JSON filters into the engine's conditions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import qdrant_edge as edge

from services.local.vectors import points, shape
from services.local.vectors.refusal import refused

_CLAUSES = ("must", "should", "must_not")
_BOUNDS = ("gt", "gte", "lt", "lte")


def read_optional(value: Any, at: str) -> edge.Filter | None:
    """Return the filter, or None if `value` is None."""
    return None if value is None else read(value, at)


def read(value: Any, at: str) -> edge.Filter:
    """Return the filter; raise Invalid for conditions that this server does not support."""
    fields = shape.mapping(value, at, (*_CLAUSES, "min_should"))
    clauses = {name: _conditions(fields[name], f"{at}.{name}") for name in _CLAUSES if name in fields}
    min_should = _min_should(fields["min_should"], f"{at}.min_should") if "min_should" in fields else None
    return edge.Filter(**clauses, min_should=min_should)


def _conditions(value: Any, at: str) -> list[Any]:
    if not isinstance(value, list):
        return [_condition(value, at)]
    return [_condition(item, f"{at}[{i}]") for i, item in enumerate(value)]


def _min_should(value: Any, at: str) -> edge.MinShould:
    fields = shape.mapping(value, at, ("conditions", "min_count"), required=("conditions", "min_count"))
    conditions = _conditions(fields["conditions"], f"{at}.conditions")
    return edge.MinShould(
        conditions=conditions, min_count=shape.whole(fields["min_count"], f"{at}.min_count")
    )


def _condition(value: Any, at: str) -> Any:
    keys = set(shape.anything(value, at))
    if "key" in keys:
        return _field(value, at)
    for name, build in _NAMED.items():
        if name in keys:
            return build(shape.mapping(value, at, (name,), required=(name,))[name], f"{at}.{name}")
    return read(value, at)


def _field(value: Any, at: str) -> edge.FieldCondition:
    fields = shape.mapping(value, at, ("key", "match", "range", "is_empty", "is_null"))
    parts: dict[str, Any] = {
        name: shape.flag(fields[name], f"{at}.{name}") for name in ("is_empty", "is_null") if name in fields
    }
    if "match" in fields:
        parts["match"] = _match(fields["match"], f"{at}.match")
    if "range" in fields:
        parts["range"] = _range(fields["range"], f"{at}.range")
    if len(parts) != 1:
        shape.refuse(at, "must carry exactly one of match, range, is_empty, is_null")
    with refused(at):
        return edge.FieldCondition(key=shape.text(fields["key"], f"{at}.key"), **parts)


def _match(value: Any, at: str) -> Any:
    fields = shape.mapping(value, at, ("value", "any", "except"))
    if len(fields) != 1:
        shape.refuse(at, "must carry exactly one of value, any, except")
    (kind, operand), *_ = fields.items()
    with refused(at):
        if kind == "value":
            return edge.MatchValue(_value(operand, at))
        return {"any": edge.MatchAny, "except": edge.MatchExcept}[kind](_values(operand, f"{at}.{kind}"))


def _value(value: Any, at: str) -> Any:
    # The engine's Python binding reads True as the number 1, which matches no boolean in a payload.
    # It reads numpy's boolean as a boolean.
    if isinstance(value, bool):
        return np.bool_(value)
    return (
        value
        if isinstance(value, str | int)
        else shape.refuse(at, "must be a string, whole number or boolean")
    )


def _values(value: Any, at: str) -> list[Any]:
    values = shape.items(value, at)
    if all(isinstance(item, str) for item in values):
        return values
    return [shape.whole(item, f"{at}[{i}]", least=-(2**63)) for i, item in enumerate(values)]


def _range(value: Any, at: str) -> Any:
    bounds = shape.mapping(value, at, _BOUNDS)
    with refused(at):
        if any(isinstance(bound, str) for bound in bounds.values()):
            return edge.RangeDateTime(**{k: shape.text(v, f"{at}.{k}") for k, v in bounds.items()})
        return edge.RangeFloat(**{k: shape.number(v, f"{at}.{k}") for k, v in bounds.items()})


def _key(value: Any, at: str) -> str:
    return shape.text(shape.mapping(value, at, ("key",), required=("key",))["key"], f"{at}.key")


def _is_empty(value: Any, at: str) -> edge.IsEmptyCondition:
    with refused(at):
        return edge.IsEmptyCondition(_key(value, at))


def _is_null(value: Any, at: str) -> edge.IsNullCondition:
    with refused(at):
        return edge.IsNullCondition(_key(value, at))


def _has_id(value: Any, at: str) -> edge.HasIdCondition:
    return edge.HasIdCondition(set(points.read_ids(value, at)))


def _has_vector(value: Any, at: str) -> edge.HasVectorCondition:
    return edge.HasVectorCondition(shape.text(value, at))


def _nested(value: Any, at: str) -> edge.NestedCondition:
    fields = shape.mapping(value, at, ("key", "filter"), required=("key", "filter"))
    with refused(at):
        return edge.NestedCondition(
            shape.text(fields["key"], f"{at}.key"), read(fields["filter"], f"{at}.filter")
        )


_NAMED: dict[str, Callable[[Any, str], Any]] = {
    "is_empty": _is_empty,
    "is_null": _is_null,
    "has_id": _has_id,
    "has_vector": _has_vector,
    "nested": _nested,
}
