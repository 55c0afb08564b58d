"""Reading JSON strictly: what has another shape, or a key nobody reads, is refused with its place.

A null counts as absent, as it does in the protocol.
"""

from collections.abc import Collection
from typing import Any, NoReturn

from shared.foundation import errors


def mapping(value: Any, at: str, known: Collection[str], required: Collection[str] = ()) -> dict[str, Any]:
    """Return the object without its nulls; raise Invalid for an unknown or a missing key."""
    fields = {key: item for key, item in anything(value, at).items() if item is not None}
    for key in fields:
        if key not in known:
            refuse(f"{at}.{key}", f"is not supported here (known: {', '.join(sorted(known))})")
    for key in required:
        if key not in fields:
            refuse(f"{at}.{key}", "is missing")
    return fields


def anything(value: Any, at: str) -> dict[str, Any]:
    """Return the object with whatever keys it has."""
    return value if isinstance(value, dict) else refuse(at, "must be an object")


def items(value: Any, at: str) -> list[Any]:
    """Return the list."""
    return value if isinstance(value, list) else refuse(at, "must be a list")


def texts(value: Any, at: str) -> list[str]:
    """Return the list of strings."""
    return [text(item, f"{at}[{i}]") for i, item in enumerate(items(value, at))]


def text(value: Any, at: str) -> str:
    """Return the string."""
    return value if isinstance(value, str) else refuse(at, "must be a string")


def whole(value: Any, at: str, least: int = 0) -> int:
    """Return the whole number, at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        refuse(at, f"must be a whole number of at least {least}")
    return int(value)


def number(value: Any, at: str) -> float:
    """Return the number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse(at, "must be a number")
    return float(value)


def flag(value: Any, at: str) -> bool:
    """Return the truth value."""
    return value if isinstance(value, bool) else refuse(at, "must be true or false")


def refuse(at: str, rule: str) -> NoReturn:
    """Raise Invalid for the value at this place."""
    raise errors.Invalid(at, rule)
