"""Apply a filter expression in Postgres. It is true or false of a row, never unknown."""

import operator
from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    ARRAY,
    Boolean,
    ColumnElement,
    DateTime,
    Double,
    Numeric,
    Text,
    and_,
    any_,
    case,
    cast,
    collate,
    exists,
    false,
    func,
    literal,
    not_,
    or_,
)
from sqlalchemy.types import TypeEngine

from shared.foundation import filter_expression
from shared.foundation.filter_expression import (
    AllOf,
    AnyOf,
    Comparison,
    Expression,
    FieldType,
    Operator,
    Value,
)

_RANGES = {
    Operator.GT: operator.gt,
    Operator.GTE: operator.ge,
    Operator.LT: operator.lt,
    Operator.LTE: operator.le,
}
_NUMBER = f"^{filter_expression.NUMBER}$"
ColumnOf = Callable[[Comparison], ColumnElement[Any]]
"""Return the column of a condition's field: NULL where the field is missing, an array for texts."""


def to_sql(expression: Expression, column_of: ColumnOf) -> ColumnElement[bool]:
    """Return the condition on rows that an expression is."""
    if isinstance(expression, AllOf):
        return and_(*(to_sql(part, column_of) for part in expression.parts))
    if isinstance(expression, AnyOf):
        return or_(*(to_sql(part, column_of) for part in expression.parts))
    is_met = func.coalesce(_is_met(expression, column_of(expression)), false(), type_=Boolean)
    return not_(is_met) if expression.is_negated else is_met


def _is_met(comparison: Comparison, column: ColumnElement[Any]) -> ColumnElement[bool]:
    if comparison.type is FieldType.TEXTS:
        return _is_any_met(comparison, column)
    if comparison.op is Operator.EXISTS:
        return column.is_not(None)
    if comparison.op is Operator.PREFIX:
        return _has_prefix(column, str(comparison.values[0]), is_path=comparison.type is FieldType.PATH)
    if comparison.type is FieldType.METADATA:
        return or_(*_compare_metadata(comparison, column))
    return _compare(comparison.op, column, comparison.values)


def _is_any_met(comparison: Comparison, column: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return the condition that one of the texts in an array meets a comparison."""
    if comparison.op is Operator.EXISTS:
        return func.cardinality(column) > 0
    if comparison.op is Operator.PREFIX:
        item = func.unnest(column).column_valued("item")
        return exists(item).where(func.starts_with(item, str(comparison.values[0])))
    return column.bool_op("&&")(literal(list(comparison.values), ARRAY(Text)))


def _has_prefix(column: ColumnElement[Any], prefix: str, *, is_path: bool) -> ColumnElement[bool]:
    if is_path:
        return or_(column == prefix, func.starts_with(column, f"{prefix}/"))
    return func.starts_with(column, prefix)


def _compare_metadata(comparison: Comparison, column: ColumnElement[str]) -> list[ColumnElement[bool]]:
    """Return the comparisons with texts and with numbers, of which one must be met.

    With a number, only a value that is written as a number is compared, as a number.
    """
    texts: list[Value] = [value for value in comparison.values if isinstance(value, str)]
    numbers: list[Value] = [value for value in comparison.values if not isinstance(value, str)]
    number = case((column.bool_op("~")(_NUMBER), cast(column, Numeric)))
    # By code point, whatever the database's language is.
    parts: list[tuple[ColumnElement[Any], list[Value]]] = [(collate(column, "C"), texts), (number, numbers)]
    return [_compare(comparison.op, side, values) for side, values in parts if values]


def _compare(op: Operator, column: ColumnElement[Any], values: Sequence[Value]) -> ColumnElement[bool]:
    sql_type = _sql_type(values[0])
    if op in _RANGES:
        condition: ColumnElement[bool] = _RANGES[op](column, literal(values[0], sql_type))
        return condition
    if len(values) == 1:
        return column == literal(values[0], sql_type)
    return column == any_(literal(list(values), ARRAY(sql_type)))


def _sql_type(value: Value) -> TypeEngine[Any]:
    types: dict[type, TypeEngine[Any]] = {
        Decimal: Numeric(),
        float: Double(),
        datetime: DateTime(timezone=True),
    }
    return types.get(type(value), Text())
