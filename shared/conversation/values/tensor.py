"""Tensors: a number type, a shape, and the numbers as little-endian bytes in row-major order.

The bytes are stored as they are, so no number is rounded. NumPy is not a dependency: with NumPy a
tensor converts to an array (`numpy()`, `numpy.asarray(tensor)`), without it `get` reads single
numbers.
"""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.foundation import errors

# NumPy's type names and the format characters of `struct`.
DTYPES = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
}
_MAX_AXES = 32


@dataclass(frozen=True, slots=True)
class Tensor:
    """Numbers of one type in a shape; a shape without axes has exactly one number."""

    dtype: str
    shape: Sequence[int]
    data: bytes

    def __post_init__(self) -> None:
        if not isinstance(self.dtype, str) or self.dtype not in DTYPES:
            raise errors.Invalid("dtype", f"must be one of {', '.join(DTYPES)}")
        object.__setattr__(self, "shape", validate_shape(self.shape, self.data, self._item_size()))

    def _item_size(self) -> int:
        return struct.calcsize("<" + DTYPES[self.dtype])

    def get(self, *indices: int) -> bool | int | float | None:
        """Return the number at a position, given as one index per axis, or None outside the shape."""
        in_range = (0 <= index < size for index, size in zip(indices, self.shape, strict=False))
        if len(indices) != len(self.shape) or not all(in_range):
            return None
        offset = 0
        for index, size in zip(indices, self.shape, strict=True):
            offset = offset * size + index
        (number,) = struct.unpack_from("<" + DTYPES[self.dtype], self.data, offset * self._item_size())
        return number  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return math.prod(self.shape)

    @property
    def is_empty(self) -> bool:
        """Whether the tensor has no numbers."""
        return len(self) == 0

    def numpy(self) -> Any:
        """Return the numbers as a read-only NumPy array; NumPy must be installed."""
        return to_array(self.data, self.dtype, self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:  # noqa: FBT001
        return convert_array(self.numpy(), dtype, copy=copy)


def validate_shape(shape: Any, data: bytes, size: int) -> tuple[int, ...]:
    """Return the shape as a tuple; raise errors.Invalid unless numbers of `size` bytes fill it exactly."""
    if not isinstance(shape, (list, tuple)) or len(shape) > _MAX_AXES:
        raise errors.Invalid("shape", f"must be an array of at most {_MAX_AXES} lengths")
    if not all(type(length) is int and length >= 0 for length in shape):
        raise errors.Invalid("shape", "must hold whole numbers from 0")
    if math.prod(shape) * size != len(data):
        raise errors.Invalid("data", "must be as long as the shape asks for")
    return tuple(shape)


def to_array(data: bytes, dtype: str, shape: Sequence[int]) -> Any:
    """Return bytes as a NumPy array; NumPy must be installed."""
    import numpy as np

    return np.frombuffer(data, np.dtype(dtype).newbyteorder("<")).reshape(tuple(shape))


def convert_array(array: Any, dtype: Any, *, copy: bool | None) -> Any:
    """Convert an array as NumPy's `__array__` protocol requires.

    `copy` is True for a copy, False for no copy and None for a copy only if the type differs.
    Raises ValueError when `copy` is False and the type requires a copy.
    """
    result = array if dtype is None else array.astype(dtype, copy=False)
    if copy is False and result is not array:
        raise ValueError("another type needs a copy")
    return result.copy() if copy and result is array else result
