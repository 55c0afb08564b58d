"""Tensors: a type of number, a shape, and the numbers as bytes, little-endian and row by row.

The bytes are what is kept, so nothing is rounded on the way. NumPy is no dependency: whoever has it
gets arrays (`numpy()`, `numpy.asarray(tensor)`), whoever has not gets numbers (`get`).
"""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.foundation import errors

# Names of NumPy and how `struct` calls them.
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
_AXES = 32


@dataclass(frozen=True, slots=True)
class Tensor:
    """Numbers of one type in a shape; a shape without axes holds one number."""

    dtype: str
    shape: Sequence[int]
    data: bytes

    def __post_init__(self) -> None:
        if not isinstance(self.dtype, str) or self.dtype not in DTYPES:
            raise errors.Invalid("dtype", f"must be one of {', '.join(DTYPES)}")
        object.__setattr__(self, "shape", checked_shape(self.shape, self.data, self._size()))

    def _size(self) -> int:
        return struct.calcsize("<" + DTYPES[self.dtype])

    def get(self, *place: int) -> bool | int | float | None:
        """Return the number at a place, one index for each axis; None where there is none."""
        inside = (0 <= index < size for index, size in zip(place, self.shape, strict=False))
        if len(place) != len(self.shape) or not all(inside):
            return None
        offset = 0
        for index, size in zip(place, self.shape, strict=True):
            offset = offset * size + index
        (number,) = struct.unpack_from("<" + DTYPES[self.dtype], self.data, offset * self._size())
        return number  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return math.prod(self.shape)

    @property
    def is_empty(self) -> bool:
        """Whether it holds no number."""
        return len(self) == 0

    def numpy(self) -> Any:
        """Return the numbers as a read-only array of NumPy."""
        return array_of(self.data, self.dtype, self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:  # noqa: FBT001
        return converted(self.numpy(), dtype, copy=copy)


def checked_shape(shape: Any, data: bytes, size: int) -> tuple[int, ...]:
    """Return a shape if numbers of `size` bytes fill it exactly; raise errors.Invalid otherwise."""
    if not isinstance(shape, (list, tuple)) or len(shape) > _AXES:
        raise errors.Invalid("shape", f"must be an array of at most {_AXES} lengths")
    if not all(type(length) is int and length >= 0 for length in shape):
        raise errors.Invalid("shape", "must hold whole numbers from 0")
    if math.prod(shape) * size != len(data):
        raise errors.Invalid("data", "must be as long as the shape asks for")
    return tuple(shape)


def array_of(data: bytes, dtype: str, shape: Sequence[int]) -> Any:
    """Return bytes as an array of NumPy, which must be installed."""
    import numpy as np

    return np.frombuffer(data, np.dtype(dtype).newbyteorder("<")).reshape(tuple(shape))


def converted(array: Any, dtype: Any, *, copy: bool | None) -> Any:
    """Answer what NumPy asks of `__array__`: an array of a type, copied, not copied, or as needed."""
    changed = array if dtype is None else array.astype(dtype, copy=False)
    if copy is False and changed is not array:
        raise ValueError("another type needs a copy")
    return changed.copy() if copy and changed is array else changed
