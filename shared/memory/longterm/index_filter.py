"""Ask the index for what a filter expression selects, as far as the payload of the points tells.

The index narrows, and Postgres decides: a condition on points may let more through than the expression,
never less. So a condition that the payload can't tell is left out. The importance is not in the payload,
because every reinforcement may change it, nor is when a memory was last seen.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal

from shared.foundation.filter_expression import (
    AllOf,
    Comparison,
    Expression,
    FieldType,
    Operator,
    comparisons,
)
from shared.foundation.stages import MemoryState
from shared.search.index import filters
from shared.search.index.filters import Condition, field_equals, field_is_any

NO_SESSION = ""
"""The `session_id` of a memory without a source. A point without the field is older than the field."""


def to_index(expression: Expression) -> Condition | None:
    """Return a condition that every selected memory's point meets, or None if the payload tells nothing."""
    if isinstance(expression, Comparison):
        return _compare(expression)
    parts = [to_index(part) for part in expression.parts]
    known = [part for part in parts if part is not None]
    if isinstance(expression, AllOf):
        return filters.all_of(known) if known else None
    return filters.any_of(known) if len(known) == len(parts) else None


def is_known(expression: Expression) -> bool:
    """Return whether the payload tells something about every condition of an expression."""
    return all(_compare(comparison) is not None for comparison in comparisons(expression))


def _compare(comparison: Comparison) -> Condition | None:
    if comparison.type is FieldType.METADATA:
        exact = _metadata(comparison)
    else:
        exact = _EXACT[comparison.field](comparison) if comparison.field in _EXACT else None
    if exact is not None:
        return filters.none_of([exact]) if comparison.is_negated else exact
    wider = _WIDER.get(comparison.field)
    return wider(comparison) if wider is not None else None


def _metadata(comparison: Comparison) -> Condition | None:
    if comparison.op not in (Operator.EQ, Operator.IN):
        return None
    if any(isinstance(value, Decimal) for value in comparison.values):  # 5 is written as 5, 5.0 or 50e-1
        return None
    name = comparison.metadata_name
    return field_is_any("metadata", [filters.metadata_pair(name, text) for text in _texts(comparison)])


def _terms(key: str) -> Callable[[Comparison], Condition | None]:
    """Return what compares a field whose values are in the payload as they are."""

    def compare(comparison: Comparison) -> Condition | None:
        if comparison.op is Operator.EXISTS:
            return filters.none_of([filters.is_empty(key)])
        return None if comparison.op is Operator.PREFIX else field_is_any(key, _texts(comparison))

    return compare


def _time(comparison: Comparison) -> Condition | None:
    key = comparison.field
    if comparison.op is Operator.EXISTS:
        return filters.none_of([filters.is_empty(key)])
    moments = [value for value in comparison.values if isinstance(value, datetime)]
    bounds = ("gte", "lte") if comparison.op in (Operator.EQ, Operator.IN) else (comparison.op.value,)
    return filters.any_of([filters.is_within(key, dict.fromkeys(bounds, moment)) for moment in moments])


def _namespace(comparison: Comparison) -> Condition | None:
    if comparison.op is Operator.EXISTS:
        return filters.none_of([filters.is_empty("namespace_prefixes")])
    is_prefix = comparison.op is Operator.PREFIX
    return field_is_any("namespace_prefixes", _texts(comparison)) if is_prefix else None


def _below(key: str) -> Callable[[Comparison], Condition | None]:
    """Return what compares a path whose prefixes are in the payload; it may be longer than the value."""

    def compare(comparison: Comparison) -> Condition | None:
        if comparison.op is Operator.EXISTS:
            is_empty = filters.is_empty(key)
            return is_empty if comparison.is_negated else filters.none_of([is_empty])
        return None if comparison.is_negated else field_is_any(key, _texts(comparison))

    return compare


def _archived(comparison: Comparison) -> Condition | None:
    """Return what compares the state: the payload tells only whether a memory is archived."""
    names, archived = set(comparison.values), {MemoryState.ARCHIVED}
    if comparison.op is Operator.EXISTS or archived < names:
        return None
    if names == archived:
        return field_equals("archived", not comparison.is_negated)
    return None if comparison.is_negated else field_equals("archived", False)


def _session(comparison: Comparison) -> Condition | None:
    if comparison.op is Operator.PREFIX:
        return None
    exists = comparison.op is Operator.EXISTS
    is_one = field_is_any("session_id", [NO_SESSION] if exists else _texts(comparison))
    if comparison.is_negated is not exists:
        return filters.none_of([is_one])
    return filters.any_of([is_one, filters.is_empty("session_id")])


def _texts(comparison: Comparison) -> Sequence[str]:
    return [str(value) for value in comparison.values]


# What the payload tells exactly, so that it can be negated, and what it tells less exactly.
_EXACT: dict[str, Callable[[Comparison], Condition | None]] = {
    "tags": _terms("tags"),
    "key": _terms("key"),
    "id": _terms("record_id"),
    "namespace": _namespace,
    **dict.fromkeys(("created_at", "occurred_at", "valid_from", "valid_until"), _time),
}
_WIDER: dict[str, Callable[[Comparison], Condition | None]] = {
    # The root of a category is in its prefixes in small letters too.
    "category": _below("category_prefixes"),
    "namespace": _below("namespace_prefixes"),
    "state": _archived,
    "source.session_id": _session,
}
