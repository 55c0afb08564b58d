"""Filter expressions in requests: as JSON in a body, and as a text of JSON in a query."""

from typing import Annotated, Any, Literal, TypeAlias

import orjson
from fastapi import Query
from pydantic import Field, PlainValidator

from services.gateway.api_model import ApiModel, example
from shared.conversation.sessions.filter_fields import FIELDS as SESSION_FIELDS
from shared.foundation import errors
from shared.foundation.filter_expression import (
    MAX_CONDITIONS,
    MAX_VALUES,
    Expression,
    Fields,
    Operator,
    parse,
)
from shared.memory.longterm.filter_fields import FIELDS

_COLOUR = {"field": "metadata.colour", "op": "eq", "value": "red"}
_TOPIC = {"field": "metadata.topic", "op": "prefix", "value": "travel"}
_IMPORTANT = {"field": "importance", "op": "gte", "value": 0.8}
_Scalar: TypeAlias = str | float | bool


class FilterCondition(ApiModel):
    """A condition on one field. It is false of a memory without the field, unless the operator is `ne`.

    `prefix` goes by whole segments in categories and namespaces. Metadata is compared with a number if the
    value is a number: only texts that are numbers match. Archived memories match only if `state` is asked for
    by its name, with `eq` or `in`.
    """

    model_config = example(_COLOUR)

    field: Annotated[str, Field(description=f"One of {', '.join(FIELDS)}; metadata as `metadata.<name>`.")]
    op: Operator
    value: Annotated[_Scalar | list[_Scalar], Field(description=f"A list of 1 to {MAX_VALUES} for `in`.")] = (
        True
    )


class FilterAnd(ApiModel):
    """Expressions that must all be met."""

    model_config = example({"and": [_COLOUR, _IMPORTANT]})

    parts: Annotated["list[FilterJson]", Field(alias="and", min_length=1, max_length=MAX_CONDITIONS)]


class FilterOr(ApiModel):
    """Expressions of which one must be met."""

    model_config = example({"or": [_COLOUR, _IMPORTANT]})

    parts: Annotated["list[FilterJson]", Field(alias="or", min_length=1, max_length=MAX_CONDITIONS)]


class FilterNot(ApiModel):
    """An expression that must not be met."""

    model_config = example({"not": _COLOUR})

    part: Annotated["FilterJson", Field(alias="not")]


FilterJson: TypeAlias = FilterCondition | FilterAnd | FilterOr | FilterNot
"""The form of an expression in the OpenAPI document. `parse` checks it, and says what is wrong with it."""


def _parse(value: Any) -> Expression:
    return parse(value, FIELDS)


FilterField = Annotated[Expression, PlainValidator(_parse, json_schema_input_type=FilterJson)]
"""A filter expression in a body."""


def _check(value: Any) -> Any:
    _parse(value)
    return value


CheckedFilter = Annotated[dict[str, Any], PlainValidator(_check, json_schema_input_type=FilterJson)]
"""A filter expression in a body, as JSON that `parse` accepts."""
FilterText = Annotated[
    str | None,
    Query(
        description="A filter expression as JSON, as in the body of a search.",
        examples=[orjson.dumps(_COLOUR).decode()],
    ),
]
SessionFilterText = Annotated[
    str | None,
    Query(
        description="A filter expression as JSON, of the form that searches of memories take. The fields are "
        f"{', '.join(SESSION_FIELDS)}; metadata as `metadata.<name>`.",
        examples=[orjson.dumps(_TOPIC).decode()],
    ),
]
Validity = Literal["any"]
"""`any`: memories that are not yet or no longer valid, too."""


def parse_filter_text(text: str | None, fields: Fields = FIELDS) -> Expression | None:
    """Return the expression in a query. Raise errors.Invalid if it is no JSON, and as `parse` does."""
    if text is None:
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise errors.Invalid("filter", "must be JSON") from None
    return parse(value, fields)
