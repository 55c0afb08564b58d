"""Vectors of 32-bit floats, kept as little-endian bytes: one vector, or rows of one dimension.

Rows are named by their place or, where there are labels, by label. Rows that are marked as an index
can be searched by cosine: `shared.conversation.state.vector_search`.
"""

import math
import struct
from collections.abc import Sequence
from typing import Any

from shared.conversation.values.tensor import array_of, checked_shape, converted
from shared.foundation import errors, validation

_SIZE = 4
_LABEL = 256
RowKey = int | str


class Vec:
    """One vector (shape of one axis), or rows of equal dimension (two axes), perhaps labelled."""

    def __init__(self, shape: Any, data: bytes, labels: Any = None) -> None:
        self.shape = checked_shape(shape, data, _SIZE)
        if len(self.shape) not in (1, 2) or self.shape[-1] == 0:
            raise errors.Invalid("shape", "of a vec must be [dimension] or [rows, dimension]")
        self.data = data
        self.labels = None if labels is None else self._checked(labels)

    def _checked(self, labels: Any) -> tuple[str, ...]:
        if len(self.shape) == 1 or not isinstance(labels, (list, tuple)) or len(labels) != len(self):
            raise errors.Invalid("labels", "must be an array of one label for each row")
        if not all(isinstance(label, str) for label in labels) or len(set(labels)) != len(labels):
            raise errors.Invalid("labels", "must be texts, and no two alike")
        return tuple(validation.check_text(label, "labels", _LABEL) for label in labels)

    @classmethod
    def of_numbers(cls, numbers: Any, labels: Any = None) -> "Vec":
        """Return the vec of an array of numbers, or of such arrays; each is rounded to 32 bits."""
        if not isinstance(numbers, (list, tuple)) or not numbers:
            raise errors.Invalid("value", "of a vec must be an array of numbers, or of such arrays")
        if not isinstance(numbers[0], (list, tuple)):
            return cls((len(numbers),), to_float32_bytes(numbers), labels)
        rows = [to_float32_bytes(row) for row in numbers]
        if len({len(row) for row in rows}) != 1:
            raise errors.Invalid("value", "of a vec must have rows of one dimension")
        return cls((len(rows), len(numbers[0])), b"".join(rows), labels)

    @property
    def dimension(self) -> int:
        """How many numbers a row has."""
        return int(self.shape[-1])

    def keys(self) -> list[RowKey]:
        """Return the names of the rows: their labels, or else their places."""
        return list(range(len(self))) if self.labels is None else list(self.labels)

    def get(self, place: RowKey) -> tuple[float, ...] | None:
        """Return a row; None where there is none."""
        row = self._row(place)
        if row is None:
            return None
        return struct.unpack_from(f"<{self.dimension}f", self.data, row * self.dimension * _SIZE)

    def set(self, place: RowKey, numbers: Sequence[float]) -> None:
        """Replace a row, or add one: under a new label, or at the place after the last."""
        row, vector = self._row(place), to_float32_bytes(numbers)
        if len(vector) != self.dimension * _SIZE:
            raise errors.Invalid("value", f"must have the dimension {self.dimension}")
        if row is None:
            self._add(place, vector)
        else:
            self._splice(row, vector)

    def _add(self, place: RowKey, vector: bytes) -> None:
        fits = place == len(self) if self.labels is None else isinstance(place, str)
        if len(self.shape) == 1 or not fits:
            raise errors.Invalid("place", "must be that of a row, or the next")
        if self.labels is not None:
            self.labels = (*self.labels, validation.check_text(str(place), "place", _LABEL))
        self.shape, self.data = (len(self) + 1, self.dimension), self.data + vector

    def delete(self, place: RowKey) -> bool:
        """Remove a row; tell whether it was there. The rows after it move up."""
        row = self._row(place)
        if row is None or len(self.shape) == 1:
            return False
        self._splice(row, b"")
        self.shape = (len(self) - 1, self.dimension)
        if self.labels is not None:
            self.labels = self.labels[:row] + self.labels[row + 1 :]
        return True

    def _splice(self, row: int, vector: bytes) -> None:
        start = row * self.dimension * _SIZE
        self.data = self.data[:start] + vector + self.data[start + self.dimension * _SIZE :]

    def _row(self, place: RowKey) -> int | None:
        if isinstance(place, str):
            return self.labels.index(place) if self.labels and place in self.labels else None
        return place if 0 <= place < len(self) else None

    def __len__(self) -> int:
        return 1 if len(self.shape) == 1 else int(self.shape[0])

    @property
    def is_empty(self) -> bool:
        """Whether it has no row."""
        return len(self) == 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vec):
            return NotImplemented
        return (self.shape, self.data, self.labels) == (other.shape, other.data, other.labels)

    __hash__ = None  # type: ignore[assignment]  # its rows can be changed

    def numpy(self) -> Any:
        """Return the numbers as a read-only array of NumPy, which must be installed."""
        return array_of(self.data, "float32", self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:  # noqa: FBT001
        return converted(self.numpy(), dtype, copy=copy)


def to_float32_bytes(numbers: Any) -> bytes:
    """Return numbers as little-endian 32-bit floats; raise errors.Invalid for what is none or too large."""
    if not isinstance(numbers, (list, tuple)) or not all(type(number) in (int, float) for number in numbers):
        raise errors.Invalid("value", "must be an array of numbers")
    try:
        if all(math.isfinite(number) for number in numbers):
            return struct.pack(f"<{len(numbers)}f", *numbers)
    except OverflowError:
        pass
    raise errors.Invalid("value", "must be within the range of 32-bit floats")
