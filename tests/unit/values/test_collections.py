"""SE5: collections of values, their operations and their conversion to NumPy arrays."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from shared.conversation.values import collection_codec, json_codec
from shared.conversation.values.collection import Block, Collection, Doc, List, Set, Tuple
from shared.conversation.values.tensor import DTYPES, Tensor
from shared.conversation.values.value import Bool, Float, Int, Obj, Str, Value
from shared.conversation.values.vector import Vec
from shared.foundation import errors
from tests.unit.values.strategies import COLLECTIONS


@given(COLLECTIONS)
def test_every_collection_survives_json_and_its_stored_parts(collection: Collection) -> None:
    collection_type = collection_codec.collection_type(collection)
    payload = json.loads(json.dumps(collection_codec.encode_collection(collection), allow_nan=False))
    assert collection_codec.decode_collection(collection_type, payload) == collection
    value, data = collection_codec.dump_parts(collection)
    assert collection_codec.decode_collection(collection_type, json.loads(value), data) == collection
    assert collection_codec.size_of(value, data) >= len(data or b"")


@pytest.mark.parametrize("kind", [Doc, Block])
def test_a_doc_and_a_block_name_their_values(kind: type[Doc] | type[Block]) -> None:
    collection: Any = kind()
    assert collection.is_empty
    collection.set("a", Int(1))
    collection.set("b", Str("x"))
    collection.set("a", Int(2))
    assert (collection.get("a"), collection.get("c"), collection.keys(), len(collection)) == (
        Int(2),
        None,
        ["a", "b"],
        2,
    )
    assert (collection.delete("a"), collection.delete("a"), collection.keys()) == (True, False, ["b"])
    assert not collection.is_empty


def test_a_doc_holds_primary_values_only_and_a_block_bytes_too() -> None:
    Block().set("a", Obj(b""))
    doc: Any = Doc()
    with pytest.raises(errors.Invalid):
        doc.set("a", Obj(b""))
    with pytest.raises(errors.Invalid):
        doc.set("a", 1)
    assert Doc({"a": Int(1)}) != Block({"a": Int(1)})


def test_a_set_holds_each_value_once_whatever_its_order() -> None:
    values: list[Value] = [Int(1), Float(1.0), Bool(value=True), Int(1), Obj(b"", {"a": "b"})]
    collection = Set(values)
    assert len(collection) == 4
    assert Obj(b"", {"a": "b"}) in collection
    collection.add(Int(1))
    assert collection == Set(reversed(values))
    assert (collection.delete(Int(1)), collection.delete(Int(1)), len(collection)) == (True, False, 3)
    assert not collection.is_empty
    assert Set().is_empty


def test_a_list_orders_its_values_and_can_be_changed() -> None:
    collection = List([Int(1), Int(1)])
    collection.append(Str("x"))
    collection.set(0, Int(0))
    assert list(collection) == [Int(0), Int(1), Str("x")]
    assert (collection.get(2), collection.get(3), collection.get(-1), collection.keys()) == (
        Str("x"),
        None,
        None,
        [0, 1, 2],
    )
    assert (collection.delete(0), collection.delete(9), len(collection), collection.is_empty) == (
        True,
        False,
        2,
        False,
    )
    with pytest.raises(errors.Invalid):
        collection.set(5, Int(1))


def test_a_tuple_orders_its_values_and_never_changes() -> None:
    collection = Tuple([Int(1), Str("x")])
    assert (collection.get(1), collection.get(2), collection.keys(), len(collection)) == (
        Str("x"),
        None,
        [0, 1],
        2,
    )
    assert len({collection, Tuple([Int(1), Str("x")])}) == 1
    assert Tuple().is_empty
    assert collection != List([Int(1), Str("x")])


def test_rows_of_a_vec_are_addressed_by_position_or_label() -> None:
    unlabelled = Vec.of_numbers([[1, 2], [3, 4]])
    assert (unlabelled.keys(), unlabelled.get(1), unlabelled.get(2), len(unlabelled)) == (
        [0, 1],
        (3.0, 4.0),
        None,
        2,
    )
    unlabelled.set(0, [5, 6])
    unlabelled.set(2, [7, 8])
    assert unlabelled == Vec.of_numbers([[5, 6], [3, 4], [7, 8]])
    assert (unlabelled.delete(1), unlabelled.delete(9)) == (True, False)
    assert unlabelled == Vec.of_numbers([[5, 6], [7, 8]])
    labelled = Vec.of_numbers([[1, 2]], ["a"])
    labelled.set("b", [3, 4])
    assert (labelled.keys(), labelled.get("b"), labelled.get("c")) == (["a", "b"], (3.0, 4.0), None)
    assert labelled.delete("a")
    assert labelled == Vec.of_numbers([[3, 4]], ["b"])


def test_a_vec_rejects_invalid_rows_shapes_and_labels() -> None:
    single, rows = Vec.of_numbers([1, 2]), Vec.of_numbers([[1, 2]])
    assert (len(single), single.get(0), single.delete(0)) == (1, (1.0, 2.0), False)
    invalid: list[tuple[Vec, Any, Any]] = [
        (single, 1, [1, 2]),
        (rows, 2, [1, 2]),
        (rows, "a", [1, 2]),
        (rows, 0, [1]),
        (rows, 0, ["x", 1]),
        (rows, 0, [float("nan"), 1]),
    ]
    for vec, row_key, numbers in invalid:
        with pytest.raises(errors.Invalid):
            vec.set(row_key, numbers)
    for shape, labels in (([2, 2], None), ([0], None), ([1, 1, 1], None), ([1], ["a"]), ([1, 1], [1])):
        with pytest.raises(errors.Invalid):
            Vec(shape, b"\x00" * 4, labels)


def test_numbers_of_a_vec_are_stored_as_little_endian_32_bit_floats() -> None:
    assert Vec.of_numbers([1.0, -2.0]).data == b"\x00\x00\x80\x3f\x00\x00\x00\xc0"


def test_a_vec_converts_to_a_numpy_array() -> None:
    vec = Vec.of_numbers([[1, 2, 3], [4, 5, 6]])
    array = vec.numpy()
    assert (array.dtype, array.shape, array.tolist()) == (np.dtype("<f4"), (2, 3), [[1, 2, 3], [4, 5, 6]])
    assert np.asarray(vec).sum() == 21
    assert np.asarray(vec, dtype="float64").dtype == np.float64
    assert Vec.of_numbers([1, 2]).numpy().shape == (2,)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tensor_of_every_type_converts_to_its_original_array(dtype: str) -> None:
    array = np.arange(6).reshape(1, 2, 3).astype(dtype)
    tensor = Tensor(dtype, array.shape, array.tobytes())
    np.testing.assert_array_equal(tensor.numpy(), array)
    np.testing.assert_array_equal(np.array(tensor), array)
    assert tensor.get(0, 1, 2) == array[0, 1, 2]
    assert (tensor.get(0, 2, 0), tensor.get(0, 0), len(tensor), tensor.is_empty) == (None, None, 6, False)


def test_converting_to_another_type_without_a_copy_raises_an_error() -> None:
    tensor = Tensor("int8", (2,), b"\x01\x02")
    assert np.array(tensor, copy=True).flags.writeable
    assert not np.asarray(tensor).flags.writeable
    with pytest.raises(ValueError, match="copy"):
        tensor.__array__("float64", copy=False)


@pytest.mark.parametrize("kind", ["list", "set", "tuple", "doc", "block"])
def test_a_collection_over_the_limit_of_values_is_rejected_and_one_at_the_limit_is_accepted(
    kind: str,
) -> None:
    """Decoding more values would block the event loop for too long."""
    has_keys = kind in {"doc", "block"}
    limit = json_codec.MAX_VALUES

    def payload_of(count: int) -> object:
        return dict.fromkeys(map(str, range(count)), 1) if has_keys else list(range(count))

    assert len(collection_codec.decode_collection(kind, payload_of(limit))) == limit
    with pytest.raises(errors.TooLarge, match=str(limit)):
        collection_codec.decode_collection(kind, payload_of(limit + 1))
