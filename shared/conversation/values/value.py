"""Single values. Each variant equals only itself: `Bool(True)`, `Int(1)` and `Float(1.0)` are three things.

A float is its 64 bits: NaN equals NaN of the same bits, 0.0 is not -0.0. So every value can be a
member of a set, and reading back what was written compares equal, whatever it is.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.foundation import errors, validation

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Bool:
    """True or false."""

    value: bool

    def __post_init__(self) -> None:
        if type(self.value) is not bool:
            raise errors.Invalid("value", "must be true or false")


@dataclass(frozen=True, slots=True)
class Int:
    """A whole number of 64 bits, signed. One that does not fit is errors.Invalid: it never wraps."""

    value: int

    def __post_init__(self) -> None:
        if type(self.value) is not int or not INT_MIN <= self.value <= INT_MAX:
            raise errors.Invalid("value", "must be a whole number from -2^63 to 2^63 - 1")


@dataclass(frozen=True, slots=True, eq=False)
class Float:
    """A floating-point number of 64 bits, which are what is compared."""

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
        """Return the float of 16 hexadecimal digits."""
        try:
            # 8 bytes of more characters: `fromhex` passes over white space.
            (value,) = struct.unpack(">d", bytes.fromhex(bits) if len(bits) == _DIGITS else b"")
        except (ValueError, struct.error):
            raise errors.Invalid("value", "bits must be 16 hexadecimal digits") from None
        return cls(value)

    def __eq__(self, other: object) -> bool:
        return self.bits == other.bits if isinstance(other, Float) else NotImplemented

    def __hash__(self) -> int:
        return hash(("float", self.bits))


@dataclass(frozen=True, slots=True)
class Str:
    """A text that every store can hold: without NUL and lone surrogates."""

    value: str

    def __post_init__(self) -> None:
        if not isinstance(self.value, str):
            raise errors.Invalid("value", "must be a text")
        validation.check_text(self.value, "value", allow_blank=True)


@dataclass(frozen=True, slots=True)
class Obj:
    """Bytes with what is said of them."""

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
