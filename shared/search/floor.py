"""The cosine from which on a record is relevant by itself: learnt, and at most the start value of its model.

It is learnt from the records of all tenants. Records that are alike, such as notes by a template, would raise
it until nothing of another tenant reached it; so the model alone says how high it can be.
"""

from dataclasses import dataclass

MIN_RECORDS = 200
"""Records from which the floor is learnt."""
START_VALUES = {"all-MiniLM-L6-v2": 0.4, "text-embedding-ada-002": 0.78}
"""Floors of models until there are MIN_RECORDS, and the highest from then on; by the name without the
organisation before it."""
DEFAULT_START_VALUE = 0.3


@dataclass(frozen=True, slots=True)
class Floor:
    """The cosine that counts by itself. `is_learnt` is false for a start value."""

    cosine: float
    is_learnt: bool


def floor_of(model: str | None, learnt_cosine: float | None, record_count: int) -> Floor:
    """Return the floor of a model for which `learnt_cosine` was learnt from so many records."""
    highest = START_VALUES.get((model or "").rpartition("/")[2], DEFAULT_START_VALUE)
    cosine = highest if learnt_cosine is None else min(learnt_cosine, highest)
    return Floor(cosine, record_count >= MIN_RECORDS)
