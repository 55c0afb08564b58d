"""Single values.

A value equals only values of its own variant: `Bool(True)`, `Int(1)` and `Float(1.0)` all differ.
Floats are compared by their 64 bits: a NaN equals a NaN of the same bits, and 0.0 differs from
-0.0. Therefore every value can be a member of a set, and a value that is written and read back
compares equal to the original.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.foundation import errors, validation

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
_FLOAT_HEX_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Bool:
    """True or false."""

    value: bool

    def __post_init__(self) -> None:
        if type(self.value) is not bool:
            raise errors.Invalid("value", "must be true or false")


@dataclass(frozen=True, slots=True)
class Int:
    """A signed whole number of 64 bits. A number that does not fit raises errors.Invalid and never wraps."""

    value: int

    def __post_init__(self) -> None:
        if type(self.value) is not int or not INT_MIN <= self.value <= INT_MAX:
            raise errors.Invalid("value", "must be a whole number from -2^63 to 2^63 - 1")


@dataclass(frozen=True, slots=True, eq=False)
class Float:
    """A floating-point number of 64 bits, compared by its bits."""

    value: float

    def __post_init__(self) -> None:
        if type(self.value) is not float:
            raise errors.Invalid("value", "must be a floating-point number")

    @property
    def bits(self) -> str:
        """The 64 bits as 16 hexadecimal digits, the sign first."""
        return struct.pack(">d", self.value).hex()

    @classmethod
    def of_bits(cls, bits: str) -> "Float":
        """Return the float of 16 hexadecimal digits; raise errors.Invalid for any other text."""
        try:
            # The length is checked because `fromhex` skips white space.
            (value,) = struct.unpack(">d", bytes.fromhex(bits) if len(bits) == _FLOAT_HEX_DIGITS else b"")
        except (ValueError, struct.error):
            raise errors.Invalid("value", "bits must be 16 hexadecimal digits") from None
        return cls(value)

    def __eq__(self, other: object) -> bool:
        return self.bits == other.bits if isinstance(other, Float) else NotImplemented

    def __hash__(self) -> int:
        return hash(("float", self.bits))


@dataclass(frozen=True, slots=True)
class Str:
    """A text that every database can store: without NUL and lone surrogates."""

    value: str

    def __post_init__(self) -> None:
        if not isinstance(self.value, str):
            raise errors.Invalid("value", "must be a text")
        validation.check_text(self.value, "value", allow_blank=True)


@dataclass(frozen=True, slots=True)
class Obj:
    """Bytes with metadata."""

    data: bytes
    metadata: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.data, bytes):
            raise errors.Invalid("data", "must be bytes")
        object.__setattr__(self, "metadata", validation.check_metadata(self.metadata))

    def __hash__(self) -> int:
        return hash((self.data, frozenset(self.metadata.items())))


Primary = Bool | Int | Float | Str
Value = Bool | Int | Float | Str | Obj


def primary_of(value: bool | float | str) -> Primary:  # noqa: FBT001  (a value, not a switch)
    """Return the variant of a plain Python value."""
    if isinstance(value, bool):
        return Bool(value)
    if isinstance(value, int):
        return Int(value)
    return Float(value) if isinstance(value, float) else Str(value)
