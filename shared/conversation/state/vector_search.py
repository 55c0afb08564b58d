"""Search a vec by cosine: exactly, for a collection is small enough to be read as a whole.

In plain Python, since NumPy is no dependency. A larger vec is compared in a thread, so that the
requests beside it get their turn.
"""

import asyncio
import math
from collections.abc import Sequence
from heapq import nsmallest
from operator import mul
from typing import Any

from shared.conversation.state import rules
from shared.conversation.state.protocol import StateStore
from shared.conversation.values.vector import Vec, to_float32_bytes
from shared.foundation import errors

# Some milliseconds of arithmetic.
_LARGE = 20_000


async def nearest(store: StateStore, label: str, vector: Sequence[float], limit: int) -> list[dict[str, Any]]:
    """Return {place, label, score} of the rows most like a vector, the best first.

    Raises errors.Conflict for a collection that is no index, errors.Invalid for a vector that has
    another dimension or no direction. Rows without a direction are never like anything.
    """
    rules.check_operation(store, "search")
    snapshot = await store.get_collection(label)
    if snapshot is None:
        raise errors.NotFound(f"collection not found: {label}")
    held = snapshot.collection
    if not isinstance(held, Vec) or not snapshot.listing.index:
        raise errors.Conflict(f"collection '{label}' is no index: put a vec with \"index\": true")
    _check_vector(vector, held.dimension)
    if len(held.data) < _LARGE:
        return _best(held, vector, limit)
    return await asyncio.to_thread(_best, held, vector, limit)


def _check_vector(vector: Sequence[float], dimension: int) -> None:
    to_float32_bytes(vector)
    if len(vector) != dimension:
        raise errors.Invalid("vector", f"must have the dimension {dimension}")
    if not any(vector):
        raise errors.Invalid("vector", "must have a direction: not all zeros")


def _best(held: Vec, vector: Sequence[float], limit: int) -> list[dict[str, Any]]:
    rows = (held.get(place) or () for place in range(len(held)))
    scored = [(-_cosine(row, vector), place) for place, row in enumerate(rows)]
    ranked = nsmallest(limit, (pair for pair in scored if not math.isnan(pair[0])))
    labels = held.labels or [None] * len(held)
    return [{"place": place, "label": labels[place], "score": -score} for score, place in ranked]


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine of two vectors; NaN where one has no direction."""
    lengths = math.hypot(*one) * math.hypot(*other)
    if not lengths or not math.isfinite(lengths):
        return math.nan
    cosine: float = sum(map(mul, one, other)) / lengths
    return max(-1.0, min(1.0, cosine))
