"""Batches whose items stand on their own: some stored, some refused, answered in their places."""

from collections.abc import Mapping, Sequence
from typing import Any

JsonObject = dict[str, Any]


def merge_results(stored: Sequence[JsonObject], refused: Mapping[int, JsonObject]) -> list[JsonObject]:
    """Return the answers of a batch in order; `refused` holds some by their place in it."""
    following = iter(stored)
    return [refused[i] if i in refused else next(following) for i in range(len(stored) + len(refused))]
