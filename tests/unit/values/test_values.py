"""SE4: typed values are compared by variant and by bits, and written as JSON without loss."""

import json
import math
import struct
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shared.conversation.values import json_codec
from shared.conversation.values.value import INT_MAX, INT_MIN, Bool, Float, Int, Obj, Str, Value
from shared.foundation import errors
from tests.unit.values.strategies import FLOATS, VALUES


@given(VALUES)
@example(Float(-0.0))
@example(Float.of_bits("7ff0000000000001"))
@example(Float.of_bits("fff8000000000000"))
@example(Int(INT_MIN))
@example(Obj(b"\x00\xff", {"a": ""}))
def test_every_value_survives_json_and_its_stored_text(value: Value) -> None:
    assert json_codec.loads(json_codec.dumps(value)) == value
    assert json_codec.decode(json.loads(json.dumps(json_codec.encode(value), allow_nan=False))) == value
    assert json_codec.decode(orjson.loads(orjson.dumps(json_codec.encode(value)))) == value


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
@example(0, 1 << 63)
@example(0x7FF8 << 48, 0x7FF8 << 48)
@example(0x7FF8 << 48, (0x7FF8 << 48) + 1)
def test_floats_are_equal_exactly_when_their_bits_are_equal(bits: int, other_bits: int) -> None:
    first, second = Float.of_bits(f"{bits:016x}"), Float.of_bits(f"{other_bits:016x}")
    assert (first == second) is (bits == other_bits)
    assert first == Float.of_bits(first.bits)
    assert hash(first) == hash(Float.of_bits(first.bits))


def test_nan_equals_itself_and_the_two_zeros_differ() -> None:
    assert Float(math.nan) == Float(math.nan)
    assert Float(0.0) != Float(-0.0)
    assert len({Float(math.nan), Float(math.nan), Float(0.0), Float(-0.0)}) == 3


@pytest.mark.parametrize("bits", ["", "7ff8", "7ff8 00000000 0001", "7ff80000000000010", "7ff800000000000g"])
def test_the_bits_of_a_float_are_16_hexadecimal_digits_and_nothing_else(bits: str) -> None:
    with pytest.raises(errors.Invalid, match="16 hexadecimal digits"):
        Float.of_bits(bits)


@given(FLOATS)
def test_an_encoded_float_is_never_decoded_as_another_variant(value: Float) -> None:
    assert isinstance(json_codec.loads(json_codec.dumps(value)), Float)


def test_no_value_equals_one_of_another_variant() -> None:
    values: list[Value] = [Bool(value=True), Int(1), Float(1.0), Str("1"), Str("True"), Obj(b"1")]
    assert len(set(values)) == len(values)
    for index, value in enumerate(values):
        assert [value == other for other in values] == [index == position for position in range(len(values))]


@pytest.mark.parametrize("number", [INT_MAX + 1, INT_MIN - 1, 2**64, -(2**64), 10**30])
def test_an_integer_out_of_bounds_is_an_error_and_never_wraps(number: int) -> None:
    with pytest.raises(errors.Invalid, match=r"2\^63"):
        Int(number)
    with pytest.raises(errors.Invalid, match="kv"):
        json_codec.decode(number, "kv")
    with pytest.raises(errors.Invalid):
        json_codec.decode({"type": "int", "value": str(number)})


def test_the_smallest_and_the_largest_integer_are_valid() -> None:
    assert [json_codec.decode(number) for number in (INT_MIN, INT_MAX)] == [Int(INT_MIN), Int(INT_MAX)]


@pytest.mark.parametrize(
    ("payload", "value"),
    [
        (True, Bool(value=True)),
        (1, Int(1)),
        (1.0, Float(1.0)),
        ({"type": "float", "value": 1}, Float(1.0)),
        ({"type": "float", "value": -0.0}, Float(-0.0)),
        ({"type": "float", "value": "Infinity"}, Float(math.inf)),
        ({"type": "float", "bits": "8000000000000000"}, Float(-0.0)),
        ({"type": "int", "value": "-9223372036854775808"}, Int(INT_MIN)),
        ({"type": "bool", "value": False}, Bool(value=False)),
        ({"type": "str", "value": "x"}, Str("x")),
        ({"type": "obj", "data": "AA=="}, Obj(b"\x00")),
    ],
)
def test_a_value_may_name_its_type(payload: Any, value: Value) -> None:
    assert json_codec.decode(payload) == value
    assert json_codec.type_of(value) == type(value).__name__.lower()


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        {},
        math.nan,
        math.inf,
        {"type": "float"},
        {"type": "float", "value": True},
        {"type": "float", "value": 10**400},
        {"type": "float", "value": 1.0, "bits": "3ff0000000000000"},
        {"type": "float", "bits": "zz"},
        {"type": "int", "value": True},
        {"type": "int", "value": "1.0"},
        {"type": "int", "value": "٣"},
        {"type": "bool", "value": 1},
        {"type": "str", "value": 1},
        {"type": "str", "value": "a\x00b"},
        {"type": ["str"], "value": "x"},
        {"type": "obj"},
        {"type": "obj", "data": "A"},
        {"type": "obj", "data": "é"},
        {"type": "obj", "data": "", "metadata": []},
        {"type": "str", "value": "x", "more": 1},
        "a\ud800b",
    ],
)
def test_an_invalid_value_raises_an_error_that_names_the_field(payload: Any) -> None:
    with pytest.raises(errors.Invalid, match=r"^plan: "):
        json_codec.decode(payload, "plan")


def test_constructors_accept_only_their_own_type() -> None:
    invalid: list[Any] = [(Bool, 1), (Int, True), (Int, 1.0), (Float, 1), (Str, b"x"), (Obj, "x")]
    for variant, value in invalid:
        with pytest.raises(errors.Invalid):
            variant(value)


def test_an_object_keeps_its_own_copy_of_its_metadata() -> None:
    metadata = {"a": "b"}
    value = Obj(b"", metadata)
    metadata["a"] = "c"
    assert value == Obj(b"", {"a": "b"})
    assert struct.pack(">d", 1.0).hex() == Float(1.0).bits
