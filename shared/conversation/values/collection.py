"""Collections of values.

A state store returns a snapshot: a caller changes it and then writes it back as a whole. Doc and
Block map keys to values, a Doc to primary values only. List and Tuple keep values in order, a Set
keeps each value once. `get` returns None for a missing element; `delete` returns whether the
element existed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from shared.conversation.values.tensor import Tensor
from shared.conversation.values.value import Primary, Value
from shared.conversation.values.vector import Vec
from shared.foundation import errors, validation

V = TypeVar("V", bound=Value)
_MAX_KEY_LENGTH = 256


class _Named(Generic[V]):
    """Values by key, in the order in which the keys were first written."""

    _value_type: type | object = Value

    def __init__(self, values: Mapping[str, V] | None = None) -> None:
        self._values: dict[str, V] = {}
        for key, value in (values or {}).items():
            self.set(key, value)

    def get(self, key: str) -> V | None:
        """Return the value of a key, or None."""
        return self._values.get(key)

    def set(self, key: str, value: V) -> None:
        """Write a key."""
        validation.check_text(key, "key", _MAX_KEY_LENGTH, allow_blank=True)
        self._values[key] = _check_type(value, self._value_type)

    def delete(self, key: str) -> bool:
        """Delete a key; return whether it existed."""
        return self._values.pop(key, None) is not None

    def keys(self) -> list[str]:
        """Return the keys."""
        return list(self._values)

    def items(self) -> list[tuple[str, V]]:
        """Return the keys with their values."""
        return list(self._values.items())

    def __len__(self) -> int:
        return len(self._values)

    @property
    def is_empty(self) -> bool:
        """Whether the collection has no values."""
        return not self._values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Named) and type(self) is type(other) and self._values == other._values

    __hash__ = None  # type: ignore[assignment]  # the collection is mutable


class Doc(_Named[Primary]):
    """Primary values by key."""

    _value_type = Primary


class Block(_Named[Value]):
    """Values by key, including bytes."""


class Set:
    """Unordered values without repeats."""

    def __init__(self, values: Iterable[Value] = ()) -> None:
        # A dict keeps the insertion order, so that a set is always serialised the same way.
        self._values = dict.fromkeys(_check_type(value) for value in values)

    def add(self, value: Value) -> None:
        """Add a value unless the set contains it."""
        self._values[_check_type(value)] = None

    def delete(self, value: Value) -> bool:
        """Remove a value; return whether it existed."""
        existed = value in self._values
        self._values.pop(value, None)
        return existed

    def __contains__(self, value: object) -> bool:
        return value in self._values

    def __iter__(self) -> Iterator[Value]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    @property
    def is_empty(self) -> bool:
        """Whether the collection has no values."""
        return not self._values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Set) and self._values.keys() == other._values.keys()

    __hash__ = None  # type: ignore[assignment]  # the collection is mutable


class _Ordered:
    """Values in order, read by their positions."""

    _values: Sequence[Value]

    def get(self, position: int) -> Value | None:
        """Return the value at a position, counted from 0, or None."""
        return self._values[position] if 0 <= position < len(self) else None

    def keys(self) -> list[int]:
        """Return the positions."""
        return list(range(len(self)))

    def __iter__(self) -> Iterator[Value]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    @property
    def is_empty(self) -> bool:
        """Whether the collection has no values."""
        return not self._values


class List(_Ordered):
    """Values in order that can be changed."""

    def __init__(self, values: Iterable[Value] = ()) -> None:
        self._values: list[Value] = [_check_type(value) for value in values]

    def set(self, position: int, value: Value) -> None:
        """Replace the value at a position, or append one at the position after the last.

        Raises errors.Invalid for any other position.
        """
        if not 0 <= position <= len(self):
            raise errors.Invalid("place", f"must be from 0 to {len(self)}")
        self._values[position : position + 1] = [_check_type(value)]

    def append(self, value: Value) -> None:
        """Add a value at the end."""
        self.set(len(self), value)

    def delete(self, position: int) -> bool:
        """Remove the value at a position; the values after it move up. Return whether it existed."""
        exists = 0 <= position < len(self)
        if exists:
            del self._values[position]
        return exists

    def __eq__(self, other: object) -> bool:
        return isinstance(other, List) and self._values == other._values

    __hash__ = None  # type: ignore[assignment]  # the collection is mutable


class Tuple(_Ordered):
    """Values in order that can't be changed; a Tuple can only be replaced as a whole."""

    def __init__(self, values: Iterable[Value] = ()) -> None:
        self._values: tuple[Value, ...] = tuple(_check_type(value) for value in values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tuple) and self._values == other._values

    def __hash__(self) -> int:
        return hash(self._values)


Collection = Doc | Block | Set | List | Tuple | Vec | Tensor
COLLECTIONS = {kind.__name__.lower(): kind for kind in (Doc, Block, Set, List, Tuple, Vec, Tensor)}


def _check_type(value: V, kind: type | object = Value) -> V:
    if not isinstance(value, kind):  # type: ignore[arg-type]
        raise errors.Invalid("value", "is not of a kind that this collection holds")
    return value
