"""Collections of values. What a store hands out is a snapshot: change it, then put it back.

Doc and Block name their values, a Doc's being primary; List and Tuple order them, a Set holds each
once. `get` answers None for what is not there, `delete` tells whether it was.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from shared.conversation.values.tensor import Tensor
from shared.conversation.values.value import Primary, Value
from shared.conversation.values.vector import Vec
from shared.foundation import errors, validation

V = TypeVar("V", bound=Value)
_KEY = 256


class _Named(Generic[V]):
    """Values by name, in the order of their first writing."""

    _kind: type | object = Value

    def __init__(self, values: Mapping[str, V] | None = None) -> None:
        self._values: dict[str, V] = {}
        for key, value in (values or {}).items():
            self.set(key, value)

    def get(self, key: str) -> V | None:
        """Return the value of a key."""
        return self._values.get(key)

    def set(self, key: str, value: V) -> None:
        """Write a key."""
        validation.check_text(key, "key", _KEY, allow_blank=True)
        self._values[key] = _checked(value, self._kind)

    def delete(self, key: str) -> bool:
        """Delete a key."""
        return self._values.pop(key, None) is not None

    def keys(self) -> list[str]:
        """Return the keys."""
        return list(self._values)

    def items(self) -> list[tuple[str, V]]:
        """Return keys with their values."""
        return list(self._values.items())

    def __len__(self) -> int:
        return len(self._values)

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing."""
        return not self._values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Named) and type(self) is type(other) and self._values == other._values

    __hash__ = None  # type: ignore[assignment]  # it can be changed


class Doc(_Named[Primary]):
    """Primary values by name."""

    _kind = Primary


class Block(_Named[Value]):
    """Values by name, bytes among them."""


class Set:
    """Values without order, each once."""

    def __init__(self, values: Iterable[Value] = ()) -> None:
        # A dict for its order: a set is written the same way each time.
        self._values = dict.fromkeys(_checked(value) for value in values)

    def add(self, value: Value) -> None:
        """Add a value, if it is not there."""
        self._values[_checked(value)] = None

    def delete(self, value: Value) -> bool:
        """Remove a value."""
        there = value in self._values
        self._values.pop(value, None)
        return there

    def __contains__(self, value: object) -> bool:
        return value in self._values

    def __iter__(self) -> Iterator[Value]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing."""
        return not self._values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Set) and self._values.keys() == other._values.keys()

    __hash__ = None  # type: ignore[assignment]  # it can be changed


class _Ordered:
    """Values in order, read by their places."""

    _values: Sequence[Value]

    def get(self, place: int) -> Value | None:
        """Return the value at a place, counted from 0."""
        return self._values[place] if 0 <= place < len(self) else None

    def keys(self) -> list[int]:
        """Return the places."""
        return list(range(len(self)))

    def __iter__(self) -> Iterator[Value]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing."""
        return not self._values


class List(_Ordered):
    """Values in order."""

    def __init__(self, values: Iterable[Value] = ()) -> None:
        self._values: list[Value] = [_checked(value) for value in values]

    def set(self, place: int, value: Value) -> None:
        """Replace the value at a place, or add one after the last."""
        if not 0 <= place <= len(self):
            raise errors.Invalid("place", f"must be from 0 to {len(self)}")
        self._values[place : place + 1] = [_checked(value)]

    def append(self, value: Value) -> None:
        """Add a value after the last."""
        self.set(len(self), value)

    def delete(self, place: int) -> bool:
        """Remove the value at a place; those after it move up."""
        there = 0 <= place < len(self)
        if there:
            del self._values[place]
        return there

    def __eq__(self, other: object) -> bool:
        return isinstance(other, List) and self._values == other._values

    __hash__ = None  # type: ignore[assignment]  # it can be changed


class Tuple(_Ordered):
    """Values in order that never change: it is replaced as a whole."""

    def __init__(self, values: Iterable[Value] = ()) -> None:
        self._values: tuple[Value, ...] = tuple(_checked(value) for value in values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tuple) and self._values == other._values

    def __hash__(self) -> int:
        return hash(self._values)


Collection = Doc | Block | Set | List | Tuple | Vec | Tensor
COLLECTIONS = {kind.__name__.lower(): kind for kind in (Doc, Block, Set, List, Tuple, Vec, Tensor)}


def _checked(value: V, kind: type | object = Value) -> V:
    if not isinstance(value, kind):  # type: ignore[arg-type]
        raise errors.Invalid("value", "is not of a kind that this collection holds")
    return value
