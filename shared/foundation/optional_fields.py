"""Fields that a caller may leave out."""

from typing import TypeVar

T = TypeVar("T")


def without_none(**fields: T | None) -> dict[str, T]:
    """Return the fields that have a value, as the filters of a list."""
    return {name: value for name, value in fields.items() if value is not None}
