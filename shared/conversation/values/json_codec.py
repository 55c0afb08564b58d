"""Values and collections as JSON, without loss.

A scalar is itself where JSON says it exactly: `true`, `1`, `1.5`, `"x"`; `1` is an Int and `1.0` a
Float. What JSON cannot say, or a client's JSON library cannot, is an object with its type:

    {"type": "float", "value": 1}       also where a library writes 1.0 as 1
    {"type": "float", "value": "NaN"}   or "Infinity", "-Infinity"
    {"type": "float", "bits": "7ff8000000000001"}    any float; used for other NaNs
    {"type": "int", "value": "9007199254740993"}     also as text, for libraries that round
    {"type": "obj", "data": "<base64>", "metadata": {}}

`encode` answers the shortest of these, `decode` takes all. A collection is its JSON beside its
type's name: see `encode_collection`.
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
"""Values that one collection may hold: more would keep a gateway's loop for longer than others can wait."""
_NAN = Float.of_bits("7ff8000000000000")
_NAMED = {"NaN": _NAN, "Infinity": Float(math.inf), "-Infinity": Float(-math.inf)}
_NAMES = {value: name for name, value in _NAMED.items()}
_WHOLE = re.compile(r"-?[0-9]{1,19}")
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
        return {"type": "obj", "data": _text_of(value.data), "metadata": dict(value.metadata)}
    if isinstance(value, Float) and not math.isfinite(value.value):
        name = _NAMES.get(value)
        said = {"bits": value.bits} if name is None else {"value": name}
        return {"type": "float"} | said
    return value.value


def decode(told: Any, field: str = "value") -> Value:
    """Read a value; raise errors.Invalid, naming `field`, for anything else."""
    try:
        return _decoded(told)
    except errors.Invalid as error:
        raise type(error)(field, error.violations[0].rule) from None


def _decoded(told: Any) -> Value:
    if isinstance(told, dict):
        return _tagged(told)
    if told is None or isinstance(told, list):
        raise errors.Invalid("value", _RULE)
    # Python reads NaN and 1e999 from what it takes for JSON; no other library would.
    if isinstance(told, float) and not math.isfinite(told):
        raise errors.Invalid("value", _RULE)
    return primary_of(told)


def _tagged(told: Mapping[str, Any]) -> Value:
    kind = told.get("type")
    if not isinstance(kind, str) or kind not in _FIELDS or not told.keys() <= _FIELDS[kind] | {"type"}:
        raise errors.Invalid("value", _RULE)
    if kind == "obj":
        return Obj(_bytes_of(told.get("data")), _metadata(told.get("metadata", {})))
    if kind == "float":
        return _float(told)
    value = told.get("value")
    if kind == "int":
        return Int(int(value) if isinstance(value, str) and _WHOLE.fullmatch(value) else value)  # type: ignore[arg-type]
    return Bool(value) if kind == "bool" else Str(value)  # type: ignore[arg-type]


def _float(told: Mapping[str, Any]) -> Float:
    bits, value = told.get("bits"), told.get("value")
    if isinstance(bits, str) and "value" not in told:
        return Float.of_bits(bits)
    if isinstance(value, str) and value in _NAMED:
        return _NAMED[value]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or "bits" in told:
        raise errors.Invalid("value", _RULE)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise errors.Invalid("value", "must be within the range of 64 bits")
    return Float(number)


def _metadata(told: Any) -> dict[str, str]:
    if not isinstance(told, dict) or not all(isinstance(value, str) for value in told.values()):
        raise errors.Invalid("metadata", "must be an object of texts")
    return told


def _text_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes_of(told: Any) -> bytes:
    try:
        return base64.b64decode(told, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise errors.Invalid("data", "must be bytes as base64") from None


def dumps(value: Value) -> str:
    """Return a value as the text that stores keep."""
    return orjson.dumps(encode(value)).decode()


def loads(text: str) -> Value:
    """Read what `dumps` wrote."""
    return decode(orjson.loads(text))


def _check_fields(told: Any, allowed: set[str]) -> None:
    if not isinstance(told, dict) or not told.keys() <= allowed:
        raise errors.Invalid("value", f"must be an object of {', '.join(sorted(allowed))}")
