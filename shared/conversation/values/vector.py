"""Vectors of 32-bit floats, stored as little-endian bytes: one vector, or rows of one dimension.

A row is addressed by its position or, if the vec has labels, by its label. A vec that is marked as
an index can be searched by cosine similarity: `shared.conversation.state.vector_search`.
"""

import math
import struct
from collections.abc import Sequence
from typing import Any

from shared.conversation.values.tensor import convert_array, to_array, validate_shape
from shared.foundation import errors, validation

_FLOAT_BYTES = 4
_MAX_LABEL_LENGTH = 256
RowKey = int | str


class Vec:
    """One vector (shape of one axis), or rows of equal dimension (two axes), optionally with labels."""

    def __init__(self, shape: Any, data: bytes, labels: Any = None) -> None:
        self.shape = validate_shape(shape, data, _FLOAT_BYTES)
        if len(self.shape) not in (1, 2) or self.shape[-1] == 0:
            raise errors.Invalid("shape", "of a vec must be [dimension] or [rows, dimension]")
        self.data = data
        self.labels = None if labels is None else self._check_labels(labels)

    def _check_labels(self, labels: Any) -> tuple[str, ...]:
        if len(self.shape) == 1 or not isinstance(labels, (list, tuple)) or len(labels) != len(self):
            raise errors.Invalid("labels", "must be an array of one label for each row")
        if not all(isinstance(label, str) for label in labels) or len(set(labels)) != len(labels):
            raise errors.Invalid("labels", "must be texts, and no two alike")
        return tuple(validation.check_text(label, "labels", _MAX_LABEL_LENGTH) for label in labels)

    @classmethod
    def of_numbers(cls, numbers: Any, labels: Any = None) -> "Vec":
        """Build a vec from an array of numbers, or from an array of such arrays.

        Every number is rounded to 32 bits. Raises errors.Invalid for anything else.
        """
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
        """The number of floats in a row."""
        return int(self.shape[-1])

    def keys(self) -> list[RowKey]:
        """Return the labels of the rows, or their positions if there are no labels."""
        return list(range(len(self))) if self.labels is None else list(self.labels)

    def get(self, row_key: RowKey) -> tuple[float, ...] | None:
        """Return a row, or None."""
        position = self._position_of(row_key)
        if position is None:
            return None
        return struct.unpack_from(f"<{self.dimension}f", self.data, position * self.dimension * _FLOAT_BYTES)

    def set(self, row_key: RowKey, numbers: Sequence[float]) -> None:
        """Replace a row, or add one: under a new label, or at the position after the last.

        Raises errors.Invalid for any other position and for numbers of another dimension.
        """
        position, vector = self._position_of(row_key), to_float32_bytes(numbers)
        if len(vector) != self.dimension * _FLOAT_BYTES:
            raise errors.Invalid("value", f"must have the dimension {self.dimension}")
        if position is None:
            self._append_row(row_key, vector)
        else:
            self._replace_bytes(position, vector)

    def _append_row(self, row_key: RowKey, vector: bytes) -> None:
        fits = row_key == len(self) if self.labels is None else isinstance(row_key, str)
        if len(self.shape) == 1 or not fits:
            raise errors.Invalid("place", "must be that of a row, or the next")
        if self.labels is not None:
            self.labels = (*self.labels, validation.check_text(str(row_key), "place", _MAX_LABEL_LENGTH))
        self.shape, self.data = (len(self) + 1, self.dimension), self.data + vector

    def delete(self, row_key: RowKey) -> bool:
        """Remove a row; the rows after it move up. Return whether the row existed."""
        position = self._position_of(row_key)
        if position is None or len(self.shape) == 1:
            return False
        self._replace_bytes(position, b"")
        self.shape = (len(self) - 1, self.dimension)
        if self.labels is not None:
            self.labels = self.labels[:position] + self.labels[position + 1 :]
        return True

    def _replace_bytes(self, position: int, vector: bytes) -> None:
        start = position * self.dimension * _FLOAT_BYTES
        self.data = self.data[:start] + vector + self.data[start + self.dimension * _FLOAT_BYTES :]

    def _position_of(self, row_key: RowKey) -> int | None:
        if isinstance(row_key, str):
            return self.labels.index(row_key) if self.labels and row_key in self.labels else None
        return row_key if 0 <= row_key < len(self) else None

    def __len__(self) -> int:
        return 1 if len(self.shape) == 1 else int(self.shape[0])

    @property
    def is_empty(self) -> bool:
        """Whether the vec has no rows."""
        return len(self) == 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vec):
            return NotImplemented
        return (self.shape, self.data, self.labels) == (other.shape, other.data, other.labels)

    __hash__ = None  # type: ignore[assignment]  # the rows are mutable

    def numpy(self) -> Any:
        """Return the numbers as a read-only NumPy array; NumPy must be installed."""
        return to_array(self.data, "float32", self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:  # noqa: FBT001
        return convert_array(self.numpy(), dtype, copy=copy)


def to_float32_bytes(numbers: Any) -> bytes:
    """Return numbers as little-endian 32-bit floats.

    Raises errors.Invalid for anything that is not a number, or that 32 bits can't represent.
    """
    if not isinstance(numbers, (list, tuple)) or not all(type(number) in (int, float) for number in numbers):
        raise errors.Invalid("value", "must be an array of numbers")
    try:
        if all(math.isfinite(number) for number in numbers):
            return struct.pack(f"<{len(numbers)}f", *numbers)
    except OverflowError:
        pass
    raise errors.Invalid("value", "must be within the range of 32-bit floats")
