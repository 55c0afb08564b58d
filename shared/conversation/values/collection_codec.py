"""Write typed collections as JSON and bytes, and read them back."""

from collections.abc import Mapping
from typing import Any

import orjson

from shared.conversation.values.collection import COLLECTIONS, Block, Collection, Doc, List, Set, Tuple
from shared.conversation.values.json_codec import (
    MAX_VALUES,
    _bytes_of,
    _check_fields,
    _text_of,
    decode,
    encode,
)
from shared.conversation.values.tensor import Tensor
from shared.conversation.values.value import Obj, Primary, Value
from shared.conversation.values.vector import Vec
from shared.foundation import errors


def encode_collection(collection: Collection) -> Any:
    """Return a collection as JSON: an object of a Doc or Block, an array of a Set, List or Tuple.

    A Vec is {shape, data, labels?} and a Tensor {dtype, shape, data}, the data as base64.
    """
    head, data = split_parts(collection)
    return head if data is None else head | {"data": _text_of(data)}


def split_parts(collection: Collection) -> tuple[Any, bytes | None]:
    """Return a collection as JSON, and apart from that what is bytes by nature."""
    if isinstance(collection, (Doc, Block)):
        return {key: encode(value) for key, value in collection.items()}, None
    if isinstance(collection, Vec):
        labels = {} if collection.labels is None else {"labels": list(collection.labels)}
        return {"shape": list(collection.shape), **labels}, collection.data
    if isinstance(collection, Tensor):
        return {"dtype": collection.dtype, "shape": list(collection.shape)}, collection.data
    return [encode(value) for value in collection], None


def collection_type(collection: Collection) -> str:
    """Return the name of a collection's type."""
    return type(collection).__name__.lower()


def dump_parts(collection: Collection) -> tuple[str, bytes | None]:
    """Return the parts of a collection, the JSON as text."""
    head, data = split_parts(collection)
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


def _data(told: Mapping[str, Any], data: bytes | None) -> bytes:
    return _bytes_of(told.get("data")) if data is None else data
