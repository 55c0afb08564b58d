"""Encode typed collections as JSON and bytes, and decode them."""

from collections.abc import Mapping
from typing import Any

import orjson

from shared.conversation.values.collection import COLLECTIONS, Block, Collection, Doc, List, Set, Tuple
from shared.conversation.values.json_codec import (
    MAX_VALUES,
    check_fields,
    decode,
    decode_base64,
    encode,
    encode_base64,
)
from shared.conversation.values.tensor import Tensor
from shared.conversation.values.value import Obj, Primary, Value
from shared.conversation.values.vector import Vec
from shared.foundation import errors


def encode_collection(collection: Collection) -> Any:
    """Return a collection as JSON: an object for a Doc or Block, an array for a Set, List or Tuple.

    A Vec becomes {shape, data, labels?} and a Tensor {dtype, shape, data}, with the data as base64.
    """
    head, data = split_parts(collection)
    return head if data is None else head | {"data": encode_base64(data)}


def split_parts(collection: Collection) -> tuple[Any, bytes | None]:
    """Return a collection as JSON without its binary data, and the data of a Vec or Tensor as bytes."""
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
    """Return the parts of a collection as `split_parts` does, with the JSON as text."""
    head, data = split_parts(collection)
    return orjson.dumps(head).decode(), data


def size_of(value: str, data: bytes | None) -> int:
    """Return the size of a collection's parts in bytes."""
    return len(value.encode()) + len(data or b"")


def decode_collection(kind: str, payload: Any, data: bytes | None = None) -> Collection:
    """Decode a collection of the type `kind`.

    `data` is the binary part that `split_parts` returned. A caller may also send a Vec as an array
    of numbers, as an array of such arrays, or as {rows, labels?}. Raises errors.Invalid for a
    payload that is no collection of this type, and errors.TooLarge for one with too many values.
    """
    if kind not in COLLECTIONS:
        raise errors.Invalid("type", f"must be one of {', '.join(COLLECTIONS)}")
    if kind in {"vec", "tensor"}:
        return _decode_vec(payload, data) if kind == "vec" else _decode_tensor(payload, data)
    if isinstance(payload, list | dict) and len(payload) > MAX_VALUES:
        raise errors.TooLarge("value", f"of a {kind} must hold at most {MAX_VALUES} values")
    if kind in {"doc", "block"}:
        return _decode_mapping(kind, payload)
    if not isinstance(payload, list):
        raise errors.Invalid("value", f"of a {kind} must be an array")
    values = [decode(element, f"value.{position}") for position, element in enumerate(payload)]
    return Set(values) if kind == "set" else List(values) if kind == "list" else Tuple(values)


def _decode_mapping(kind: str, payload: Any) -> Doc | Block:
    if not isinstance(payload, dict):
        raise errors.Invalid("value", f"of a {kind} must be an object")
    values = {
        key: decode(element, f"value.{position}") for position, (key, element) in enumerate(payload.items())
    }
    if kind == "block":
        return Block(values)
    return Doc({key: _require_primary(value) for key, value in values.items()})


def _require_primary(value: Value) -> Primary:
    if isinstance(value, Obj):
        raise errors.Invalid("value", "of a doc must not hold bytes; a block may")
    return value


def _decode_vec(payload: Any, data: bytes | None) -> Vec:
    if isinstance(payload, list):
        return Vec.of_numbers(payload)
    check_fields(payload, {"shape", "data", "labels"} if "rows" not in payload else {"rows", "labels"})
    if "rows" in payload:
        return Vec.of_numbers(payload["rows"], payload.get("labels"))
    return Vec(payload.get("shape"), _binary_part(payload, data), payload.get("labels"))


def _decode_tensor(payload: Any, data: bytes | None) -> Tensor:
    check_fields(payload, {"dtype", "shape", "data"})
    return Tensor(payload.get("dtype"), payload.get("shape"), _binary_part(payload, data))


def _binary_part(payload: Mapping[str, Any], data: bytes | None) -> bytes:
    return decode_base64(payload.get("data")) if data is None else data
