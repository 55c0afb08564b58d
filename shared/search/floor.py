"""The cosine from which on a record is relevant by itself: learnt, or a start value by model."""

from dataclasses import dataclass

MIN_RECORDS = 200
"""Records from which the floor is learnt."""
START_VALUES = {"all-MiniLM-L6-v2": 0.4, "text-embedding-ada-002": 0.78}
"""Floors of models until there are MIN_RECORDS; by the name without the organisation before it."""
DEFAULT_START_VALUE = 0.3


@dataclass(frozen=True, slots=True)
class Floor:
    """The cosine that counts by itself. `is_learnt` is false for a start value."""

    cosine: float
    is_learnt: bool


def start_value(model: str | None) -> float:
    """Return the floor of a model before there are enough records to learn it from."""
    return START_VALUES.get((model or "").rpartition("/")[2], DEFAULT_START_VALUE)
