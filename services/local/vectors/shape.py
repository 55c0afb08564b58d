"""Parse JSON strictly: a wrong type or an unsupported key is refused, and the error names its path.

A null counts as absent, as in Qdrant's protocol. The parameter `at` is the path of the value.
"""

from collections.abc import Collection
from typing import Any, NoReturn

from shared.foundation import errors


def mapping(
    value: Any, at: str, supported: Collection[str], required: Collection[str] = ()
) -> dict[str, Any]:
    """Return the object without its nulls; raise Invalid for an unsupported or a missing key."""
    fields = {key: item for key, item in anything(value, at).items() if item is not None}
    for key in fields:
        if key not in supported:
            refuse(f"{at}.{key}", f"is not supported here (known: {', '.join(sorted(supported))})")
    for key in required:
        if key not in fields:
            refuse(f"{at}.{key}", "is missing")
    return fields


def anything(value: Any, at: str) -> dict[str, Any]:
    """Return the object, whatever its keys are; raise Invalid for any other value."""
    return value if isinstance(value, dict) else refuse(at, "must be an object")


def items(value: Any, at: str) -> list[Any]:
    """Return the list; raise Invalid for any other value."""
    return value if isinstance(value, list) else refuse(at, "must be a list")


def texts(value: Any, at: str) -> list[str]:
    """Return the list of strings; raise Invalid for any other value."""
    return [text(item, f"{at}[{i}]") for i, item in enumerate(items(value, at))]


def text(value: Any, at: str) -> str:
    """Return the string; raise Invalid for any other value."""
    return value if isinstance(value, str) else refuse(at, "must be a string")


def choice(value: Any, at: str, options: Collection[str]) -> str:
    """Return the string; raise Invalid unless it is one of the options."""
    if not isinstance(value, str) or value not in options:
        refuse(at, f"must be one of {', '.join(options)}")
    return value


def whole(value: Any, at: str, least: int = 0) -> int:
    """Return the whole number; raise Invalid for any other value or one below `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        refuse(at, f"must be a whole number of at least {least}")
    return int(value)


def number(value: Any, at: str) -> float:
    """Return the number; raise Invalid for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse(at, "must be a number")
    return float(value)


def flag(value: Any, at: str) -> bool:
    """Return the boolean; raise Invalid for any other value."""
    return value if isinstance(value, bool) else refuse(at, "must be true or false")


def refuse(at: str, rule: str) -> NoReturn:
    """Raise Invalid for the value at this path."""
    raise errors.Invalid(at, rule)
