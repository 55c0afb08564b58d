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

from shared.conversation.values.collection import COLLECTIONS, Block, Collection, Doc, List, Set, Tuple
from shared.conversation.values.tensor import Tensor
from shared.conversation.values.value import Bool, Float, Int, Obj, Primary, Str, Value, primary_of
from shared.conversation.values.vector import Vec
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


def encode_collection(collection: Collection) -> Any:
    """Return a collection as JSON: an object of a Doc or Block, an array of a Set, List or Tuple.

    A Vec is {shape, data, labels?} and a Tensor {dtype, shape, data}, the data as base64.
    """
    head, data = parts_of(collection)
    return head if data is None else head | {"data": _text_of(data)}


def parts_of(collection: Collection) -> tuple[Any, bytes | None]:
    """Return a collection as JSON, and apart from that what is bytes by nature."""
    if isinstance(collection, (Doc, Block)):
        return {key: encode(value) for key, value in collection.items()}, None
    if isinstance(collection, Vec):
        labels = {} if collection.labels is None else {"labels": list(collection.labels)}
        return {"shape": list(collection.shape), **labels}, collection.data
    if isinstance(collection, Tensor):
        return {"dtype": collection.dtype, "shape": list(collection.shape)}, collection.data
    return [encode(value) for value in collection], None


def kind_of(collection: Collection) -> str:
    """Return the name of a collection's type."""
    return type(collection).__name__.lower()


def dump_parts(collection: Collection) -> tuple[str, bytes | None]:
    """Return the parts of a collection, the JSON as text."""
    head, data = parts_of(collection)
    return orjson.dumps(head).decode(), data


def size_of(value: str, data: bytes | None) -> int:
    """Return the bytes that a collection's parts take."""
    return len(value.encode()) + len(data or b"")


def decode_collection(kind: str, told: Any, data: bytes | None = None) -> Collection:
    """Read a collection of the type `kind`; raise errors.Invalid for what is none or too large.

    `data` are the bytes that `parts_of` set apart. From outside a Vec may also be an array of
    numbers, or of such arrays, or {rows, labels?}.
    """
    if kind not in COLLECTIONS:
        raise errors.Invalid("type", f"must be one of {', '.join(COLLECTIONS)}")
    if kind in {"vec", "tensor"}:
        return _vec(told, data) if kind == "vec" else _tensor(told, data)
    if isinstance(told, list | dict) and len(told) > MAX_VALUES:
        raise errors.TooLarge("value", f"of a {kind} must hold at most {MAX_VALUES} values")
    if kind in {"doc", "block"}:
        return _named(kind, told)
    if not isinstance(told, list):
        raise errors.Invalid("value", f"of a {kind} must be an array")
    values = [decode(one, f"value.{place}") for place, one in enumerate(told)]
    return Set(values) if kind == "set" else List(values) if kind == "list" else Tuple(values)


def _named(kind: str, told: Any) -> Doc | Block:
    if not isinstance(told, dict):
        raise errors.Invalid("value", f"of a {kind} must be an object")
    values = {key: decode(one, f"value.{place}") for place, (key, one) in enumerate(told.items())}
    if kind == "block":
        return Block(values)
    return Doc({key: _primary(value) for key, value in values.items()})


def _primary(value: Value) -> Primary:
    if isinstance(value, Obj):
        raise errors.Invalid("value", "of a doc must not hold bytes; a block may")
    return value


def _vec(told: Any, data: bytes | None) -> Vec:
    if isinstance(told, list):
        return Vec.of_numbers(told)
    _check_fields(told, {"shape", "data", "labels"} if "rows" not in told else {"rows", "labels"})
    if "rows" in told:
        return Vec.of_numbers(told["rows"], told.get("labels"))
    return Vec(told.get("shape"), _data(told, data), told.get("labels"))


def _tensor(told: Any, data: bytes | None) -> Tensor:
    _check_fields(told, {"dtype", "shape", "data"})
    return Tensor(told.get("dtype"), told.get("shape"), _data(told, data))


def _check_fields(told: Any, allowed: set[str]) -> None:
    if not isinstance(told, dict) or not told.keys() <= allowed:
        raise errors.Invalid("value", f"must be an object of {', '.join(sorted(allowed))}")


def _data(told: Mapping[str, Any], data: bytes | None) -> bytes:
    return _bytes_of(told.get("data")) if data is None else data
