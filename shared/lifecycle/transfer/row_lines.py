"""Write a row of any exported table as a line of NDJSON, and parse it again.

Each column has a field of its own; how it is written follows from the type of the column. Binary data is
base64, a time is RFC 3339. Unlike with lines of memories, a field that the table does not have is refused:
it would be lost.
"""

import base64
import binascii
from functools import lru_cache
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, ValidationError, create_model
from sqlalchemy import BigInteger, Boolean, Column, DateTime, Float, Integer, LargeBinary, RowMapping, Text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from shared.foundation import errors, validation
from shared.foundation.exact_json import ExactJson
from shared.foundation.origin import Trust
from shared.lifecycle.transfer import ndjson
from shared.lifecycle.transfer.ndjson import Moment
from shared.lifecycle.transfer.row_checks import Fields
from shared.lifecycle.transfer.row_kind import RowKind, carried_columns

_MAX_LIST = 1000


def write_row(kind: RowKind, row: RowMapping) -> bytes:
    """Return a row as a line, with its line break."""
    fields = {kind.field_name(name): row[name] for name in carried_columns(kind)}
    as_json = {name: orjson.Fragment(fields[name]) for name in kind.json_texts if fields[name] is not None}
    line = {"kind": kind.name, **fields, **as_json}
    return orjson.dumps(line, default=_to_base64, option=orjson.OPT_APPEND_NEWLINE)


def _to_base64(value: Any) -> str:
    return base64.b64encode(value).decode()


def parse_row(kind: RowKind, raw: bytes) -> Fields:
    """Return the columns that a line names. Raises errors.Invalid, naming the field and the rule."""
    payload = ndjson.load_object(raw)
    _require_storable(payload)
    exact = ExactJson(raw)
    as_text = {name: exact.text_at(name, field=name) for name in kind.json_texts & payload.keys()}
    fields = {name: value for name, value in payload.items() if name != "kind"} | as_text
    try:
        line = _model(kind).model_validate(fields)
    except ValidationError as error:
        raise ndjson.invalid_field(error) from None
    columns = {kind.field_name(name): name for name in carried_columns(kind)}
    checked = kind.check({columns[name]: getattr(line, name) for name in line.model_fields_set})
    _check_trust(checked.get("origin_trust"))
    return checked


def _check_trust(trust: str | None) -> None:
    if trust is not None and trust not in set(Trust):
        raise errors.Invalid("origin_trust", f"must be one of {', '.join(Trust)}")


def _require_storable(payload: Any) -> None:
    pending_items = [payload]  # not recursive: JSON can nest deeper than Python's call stack
    while pending_items:
        item = pending_items.pop()
        if isinstance(item, str):
            validation.check_text(item, "line", allow_blank=True)
        if isinstance(item, dict):
            pending_items += [*item, *item.values()]
        elif isinstance(item, list):
            pending_items += item


@lru_cache
def _model(kind: RowKind) -> type[BaseModel]:
    """Return the model of a kind of line: a field for each column that it carries."""
    fields: dict[str, Any] = {
        kind.field_name(name): _field(column) for name, column in carried_columns(kind).items()
    }
    config = ConfigDict(extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)
    return create_model(f"{kind.name}_line", __config__=config, **fields)


def _field(column: Column[Any]) -> tuple[Any, Any]:
    if column.nullable:
        return _type_of(column) | None, None
    return _type_of(column), ... if column.server_default is None else None


def _type_of(column: Column[Any]) -> Any:
    for sql_type, annotation in _TYPES.items():
        if isinstance(column.type, sql_type):
            return annotation
    raise TypeError(f"no line can carry the column {column}: give its type a place in row_lines.py")


def _from_base64(value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise ValueError("must be bytes as base64") from None


_Text = Annotated[str, Strict()]
_TYPES: dict[type, Any] = {
    ARRAY: Annotated[list[_Text], Field(max_length=_MAX_LIST)],
    JSONB: Any,
    DateTime: Moment,
    Boolean: Annotated[bool, Strict()],
    BigInteger: Annotated[int, Strict(), Field(ge=0, le=2**63 - 1)],  # before Integer, whose subclass it is
    Integer: Annotated[int, Strict(), Field(ge=0, le=2**31 - 1)],
    Float: Annotated[float, Strict()],
    LargeBinary: Annotated[bytes, BeforeValidator(_from_base64)],
    Text: _Text,
}
