"""Parse filter expressions: conditions on the fields of records, joined by `and`, `or` and `not`.

    {"and": [...]}   {"or": [...]}   {"not": {...}}   {"field": "metadata.colour", "op": "eq", "value": "red"}

A condition is true or false, never unknown: on a field that a record lacks, every operator but `ne` is
false. So `ne` and `not` are complements: a record without a colour meets `colour ne red`. On a field with
several values (tags), a condition is true if one of them meets it.

A parsed expression has no `not`: it stands at the conditions, as `is_negated`. What applies an expression
(in Postgres, in the index) then knows three forms only.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeAlias

from shared.foundation import errors, validation

MAX_CONDITIONS = 32
MAX_DEPTH = 4
"""How many `and`, `or` and `not` may stand in one another."""
MAX_VALUES = 1000
"""Values of one `in`."""
MAX_TEXT_LENGTH = 1024
METADATA_PREFIX = "metadata."
NUMBER = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?"
"""A number in a text, as JSON writes it; a regular expression for Python and Postgres."""
_MAX_NUMBER = 1e308
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d:?\d\d)?", re.ASCII)


class Operator(StrEnum):
    """How a field is compared with a value."""

    EQ = "eq"
    NE = "ne"
    IN = "in"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    PREFIX = "prefix"
    EXISTS = "exists"


class FieldType(StrEnum):
    """What the values of a field are."""

    TEXT = "text"
    TEXTS = "texts"
    PATH = "path"
    CHOICE = "choice"
    NUMBER = "number"
    TIME = "time"
    METADATA = "metadata"


_EQUALITY = frozenset({Operator.EQ, Operator.NE, Operator.IN, Operator.EXISTS})
_RANGES = frozenset({Operator.GT, Operator.GTE, Operator.LT, Operator.LTE})
_OPERATORS = {
    FieldType.TEXT: _EQUALITY | {Operator.PREFIX},
    FieldType.TEXTS: _EQUALITY | {Operator.PREFIX},
    FieldType.PATH: _EQUALITY | {Operator.PREFIX},
    FieldType.CHOICE: _EQUALITY,
    FieldType.NUMBER: _EQUALITY | _RANGES,
    FieldType.TIME: _EQUALITY | _RANGES,
    FieldType.METADATA: frozenset(Operator),
}


@dataclass(frozen=True, slots=True)
class Field:
    """A field that expressions may name; `choices` are all values of a field that has a fixed list."""

    type: FieldType
    choices: tuple[str, ...] = ()


Fields: TypeAlias = Mapping[str, Field]
"""The fields of a kind of record, by name. `metadata` stands for every `metadata.<name>`."""
Value: TypeAlias = str | float | Decimal | datetime


@dataclass(frozen=True, slots=True)
class Comparison:
    """A condition on one field. `values` are several for `in`, none for `exists`, and one for the others.

    The operator `ne` is `eq` with `is_negated`. A number is a Decimal if the field holds texts, or a float.
    """

    field: str
    type: FieldType
    op: Operator
    values: tuple[Value, ...]
    is_negated: bool = False

    @property
    def metadata_name(self) -> str:
        """The name of the metadata value that is meant."""
        return self.field.removeprefix(METADATA_PREFIX)


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part must be met."""

    parts: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one part must be met."""

    parts: tuple["Expression", ...]


Expression: TypeAlias = AllOf | AnyOf | Comparison


def comparisons(expression: Expression) -> Iterator[Comparison]:
    """Yield the conditions of an expression."""
    if isinstance(expression, Comparison):
        yield expression
    else:
        for part in expression.parts:
            yield from comparisons(part)


def parse(value: Any, fields: Fields, at: str = "filter") -> Expression:
    """Return an expression. Raises errors.Invalid with the path of the part and the rule that it breaks."""
    expression = _parse(value, fields, at, 0)
    if sum(1 for _ in comparisons(expression)) > MAX_CONDITIONS:
        raise errors.Invalid(at, f"must have at most {MAX_CONDITIONS} conditions")
    return expression


def _parse(value: Any, fields: Fields, at: str, depth: int) -> Expression:
    if not isinstance(value, dict):
        raise errors.Invalid(at, "must be an object with `and`, `or`, `not`, or `field` and `op`")
    if "field" in value:
        return _parse_comparison(value, fields, at)
    if len(value) != 1 or (name := next(iter(value))) not in ("and", "or", "not"):
        raise errors.Invalid(at, "must have one of `and`, `or`, `not`, or `field`, and nothing beside it")
    if depth == MAX_DEPTH:
        raise errors.Invalid(at, f"must nest `and`, `or` and `not` at most {MAX_DEPTH} deep")
    if name == "not":
        return _negate(_parse(value[name], fields, f"{at}.not", depth + 1))
    items = _check_list(value[name], f"{at}.{name}", MAX_CONDITIONS, "expressions")
    parts = tuple(_parse(item, fields, f"{at}.{name}.{i}", depth + 1) for i, item in enumerate(items))
    return AllOf(parts) if name == "and" else AnyOf(parts)


def _negate(expression: Expression) -> Expression:
    if isinstance(expression, Comparison):
        return replace(expression, is_negated=not expression.is_negated)
    parts = tuple(_negate(part) for part in expression.parts)
    return AnyOf(parts) if isinstance(expression, AllOf) else AllOf(parts)


def _parse_comparison(value: Mapping[str, Any], fields: Fields, at: str) -> Comparison:
    for name in value:
        if name not in ("field", "op", "value"):
            raise errors.Invalid(at, "must have `field`, `op` and `value`, and nothing beside them")
    name, field = _parse_field(value["field"], fields, f"{at}.field")
    operator = _parse_operator(value.get("op"), field, f"{at}.op")
    if operator is Operator.EXISTS:
        exists = value.get("value", True)
        if not isinstance(exists, bool):
            raise errors.Invalid(f"{at}.value", "must be true or false")
        return Comparison(name, field.type, operator, (), is_negated=not exists)
    if "value" not in value:
        raise errors.Invalid(f"{at}.value", "is missing")
    values = _parse_values(value["value"], operator, field, f"{at}.value")
    if operator is Operator.NE:
        return Comparison(name, field.type, Operator.EQ, values, is_negated=True)
    return Comparison(name, field.type, operator, values)


def _parse_field(name: Any, fields: Fields, at: str) -> tuple[str, Field]:
    if isinstance(name, str):
        is_metadata = name.startswith(METADATA_PREFIX)
        field = fields.get("metadata" if is_metadata else name)
        if is_metadata and field is not None:
            key = name.removeprefix(METADATA_PREFIX)
            validation.check_text(key, at, validation.MAX_METADATA_KEY_LENGTH)
            return name, field
        if field is not None and field.type is not FieldType.METADATA:
            return name, field
    known = ", ".join(f"{name}.<name>" if name == "metadata" else name for name in fields)
    raise errors.Invalid(at, f"must be one of {known}")


def _parse_operator(name: Any, field: Field, at: str) -> Operator:
    allowed = [operator for operator in Operator if operator in _OPERATORS[field.type]]
    if not isinstance(name, str) or name not in allowed:
        raise errors.Invalid(at, f"must be one of {', '.join(allowed)} for this field")
    return Operator(name)


def _parse_values(value: Any, operator: Operator, field: Field, at: str) -> tuple[Value, ...]:
    if operator is not Operator.IN:
        return (_parse_value(value, operator, field, at),)
    items = _check_list(value, at, MAX_VALUES, "values")
    return tuple(_parse_value(item, operator, field, f"{at}.{i}") for i, item in enumerate(items))


def _check_list(value: Any, at: str, most: int, what: str) -> Sequence[Any]:
    if not isinstance(value, list) or not 1 <= len(value) <= most:
        raise errors.Invalid(at, f"must be a list of 1 to {most} {what}")
    return value


def _parse_value(value: Any, operator: Operator, field: Field, at: str) -> Value:
    match field.type:
        case FieldType.NUMBER:
            return float(_check_number(value, at, "a number"))
        case FieldType.TIME:
            return _parse_time(value, at)
        case FieldType.PATH:
            return validation.check_category(_check_text(value, at), at)
        case FieldType.CHOICE if value not in field.choices:
            raise errors.Invalid(at, f"must be one of {', '.join(field.choices)}")
        case FieldType.METADATA if operator is not Operator.PREFIX and not isinstance(value, str):
            # As it is written: 0.1 is then the number in the text "0.1".
            return Decimal(str(_check_number(value, at, "a string or a number")))
    return _check_text(value, at)


def _check_text(value: Any, at: str) -> str:
    if not isinstance(value, str):
        raise errors.Invalid(at, "must be a string")
    return validation.check_text(value, at, MAX_TEXT_LENGTH, allow_blank=True)


def _check_number(value: Any, at: str, what: str) -> int | float:
    # NaN is refused too, because no comparison with it is true.
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MAX_NUMBER:
        return value
    raise errors.Invalid(at, f"must be {what}")


def _parse_time(value: Any, at: str) -> datetime:
    moment = None
    if isinstance(value, str) and _TIME.fullmatch(value):
        try:
            moment = datetime.fromisoformat(value.upper())
        except ValueError:
            moment = None
    if moment is None:
        raise errors.Invalid(at, "must be a time such as 2026-03-01T12:00:00Z")
    return validation.check_time(moment, at)
