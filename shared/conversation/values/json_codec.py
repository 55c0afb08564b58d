"""Encode single values as JSON without loss, and decode them.

A scalar that JSON expresses exactly stays as it is: `true`, `1`, `1.5`, `"x"`; `1` is an Int and
`1.0` a Float. A value that JSON, or a client's JSON library, can't express is an object with its
type:

    {"type": "float", "value": 1}       for a library that writes 1.0 as 1
    {"type": "float", "value": "NaN"}   or "Infinity", "-Infinity"
    {"type": "float", "bits": "7ff8000000000001"}    any float; needed for all other NaNs
    {"type": "int", "value": "9007199254740993"}     as text, for a library that rounds integers
    {"type": "obj", "data": "<base64>", "metadata": {}}

`encode` returns the shortest form, `decode` accepts all of them. Collections: `collection_codec`.
"""

import base64
import binascii
import math
import re
from collections.abc import Mapping
from typing import Any

import orjson

from shared.conversation.values.value import Bool, Float, Int, Obj, Str, Value, primary_of
from shared.foundation import errors

MAX_VALUES = 65_536
"""How many values one collection may have: decoding more would block the gateway's event loop too long."""
_NAN = Float.of_bits("7ff8000000000000")
_SPECIAL_FLOATS = {"NaN": _NAN, "Infinity": Float(math.inf), "-Infinity": Float(-math.inf)}
_SPECIAL_FLOAT_NAMES = {value: name for name, value in _SPECIAL_FLOATS.items()}
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,19}")
_FIELDS = {
    "bool": {"value"},
    "int": {"value"},
    "str": {"value"},
    "float": {"value", "bits"},
    "obj": {"data", "metadata"},
}
_RULE = 'must be true, false, a number, a text, or an object such as {"type": "float", "value": "NaN"}'


def type_of(value: Value) -> str:
    """Return the name of a value's variant."""
    return type(value).__name__.lower()


def encode(value: Value) -> Any:
    """Return a value as JSON."""
    if isinstance(value, Obj):
        return {"type": "obj", "data": encode_base64(value.data), "metadata": dict(value.metadata)}
    if isinstance(value, Float) and not math.isfinite(value.value):
        name = _SPECIAL_FLOAT_NAMES.get(value)
        return {"type": "float"} | ({"bits": value.bits} if name is None else {"value": name})
    return value.value


def decode(payload: Any, field: str = "value") -> Value:
    """Decode a value; raise errors.Invalid that names `field` for anything that is no value."""
    try:
        return _decode_payload(payload)
    except errors.Invalid as error:
        raise type(error)(field, error.violations[0].rule) from None


def _decode_payload(payload: Any) -> Value:
    if isinstance(payload, dict):
        return _decode_object(payload)
    if payload is None or isinstance(payload, list):
        raise errors.Invalid("value", _RULE)
    # Python's JSON parser accepts NaN and 1e999, which are no JSON and which other libraries reject.
    if isinstance(payload, float) and not math.isfinite(payload):
        raise errors.Invalid("value", _RULE)
    return primary_of(payload)


def _decode_object(payload: Mapping[str, Any]) -> Value:
    kind = payload.get("type")
    if not isinstance(kind, str) or kind not in _FIELDS or not payload.keys() <= _FIELDS[kind] | {"type"}:
        raise errors.Invalid("value", _RULE)
    if kind == "obj":
        return Obj(decode_base64(payload.get("data")), _check_metadata(payload.get("metadata", {})))
    if kind == "float":
        return _decode_float(payload)
    value = payload.get("value")
    if kind == "int":
        return Int(int(value) if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value) else value)  # type: ignore[arg-type]
    return Bool(value) if kind == "bool" else Str(value)  # type: ignore[arg-type]


def _decode_float(payload: Mapping[str, Any]) -> Float:
    bits, value = payload.get("bits"), payload.get("value")
    if isinstance(bits, str) and "value" not in payload:
        return Float.of_bits(bits)
    if isinstance(value, str) and value in _SPECIAL_FLOATS:
        return _SPECIAL_FLOATS[value]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or "bits" in payload:
        raise errors.Invalid("value", _RULE)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise errors.Invalid("value", "must be within the range of 64 bits")
    return Float(number)


def _check_metadata(payload: Any) -> dict[str, str]:
    if not isinstance(payload, dict) or not all(isinstance(value, str) for value in payload.values()):
        raise errors.Invalid("metadata", "must be an object of texts")
    return payload


def encode_base64(data: bytes) -> str:
    """Return bytes as base64."""
    return base64.b64encode(data).decode()


def decode_base64(payload: Any) -> bytes:
    """Return the bytes of a base64 text; raise errors.Invalid for anything else."""
    try:
        return base64.b64decode(payload, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise errors.Invalid("data", "must be bytes as base64") from None


def dumps(value: Value) -> str:
    """Return a value as the JSON text that the state stores keep."""
    return orjson.dumps(encode(value)).decode()


def loads(text: str) -> Value:
    """Decode a value that `dumps` wrote."""
    return decode(orjson.loads(text))


def check_fields(payload: Any, allowed: set[str]) -> None:
    """Raise errors.Invalid unless `payload` is an object with no other fields than `allowed`."""
    if not isinstance(payload, dict) or not payload.keys() <= allowed:
        raise errors.Invalid("value", f"must be an object of {', '.join(sorted(allowed))}")
