"""Search a vec by cosine similarity.

The search is exact, because a collection is small enough to be read as a whole. It is plain Python,
because NumPy is not a dependency. A large vec is compared in a thread, so that it does not block
other requests.
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

# Comparing this many bytes takes some milliseconds.
_MAX_BYTES_IN_EVENT_LOOP = 20_000


async def nearest(store: StateStore, label: str, vector: Sequence[float], limit: int) -> list[dict[str, Any]]:
    """Return {place, label, score} of the rows most similar to a vector, best first.

    `place` is the row's position. A row of zeros has no direction and is never returned. Raises
    errors.NotFound for an unknown collection, errors.Conflict for one that is no index, and
    errors.Invalid for a vector that has another dimension or no direction.
    """
    rules.check_operation(store, "search")
    snapshot = await store.get_collection(label)
    if snapshot is None:
        raise errors.NotFound(f"collection not found: {label}")
    vec = snapshot.collection
    if not isinstance(vec, Vec) or not snapshot.info.index:
        raise errors.Conflict(f"collection '{label}' is no index: put a vec with \"index\": true")
    _check_vector(vector, vec.dimension)
    if len(vec.data) < _MAX_BYTES_IN_EVENT_LOOP:
        return _most_similar(vec, vector, limit)
    return await asyncio.to_thread(_most_similar, vec, vector, limit)


def _check_vector(vector: Sequence[float], dimension: int) -> None:
    to_float32_bytes(vector)
    if len(vector) != dimension:
        raise errors.Invalid("vector", f"must have the dimension {dimension}")
    if not any(vector):
        raise errors.Invalid("vector", "must have a direction: not all zeros")


def _most_similar(vec: Vec, vector: Sequence[float], limit: int) -> list[dict[str, Any]]:
    rows = (vec.get(position) or () for position in range(len(vec)))
    scored = [(-_cosine(row, vector), position) for position, row in enumerate(rows)]
    ranked = nsmallest(limit, (pair for pair in scored if not math.isnan(pair[0])))
    labels = vec.labels or [None] * len(vec)
    return [{"place": position, "label": labels[position], "score": -score} for score, position in ranked]


def _cosine(row: Sequence[float], vector: Sequence[float]) -> float:
    """Return the cosine of two vectors, or NaN if one of them has no direction."""
    lengths = math.hypot(*row) * math.hypot(*vector)
    if not lengths or not math.isfinite(lengths):
        return math.nan
    cosine: float = sum(map(mul, row, vector)) / lengths
    return max(-1.0, min(1.0, cosine))
