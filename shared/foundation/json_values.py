"""Compare JSON values by their types: for Python 1, 1.0 and true are equal, for JSON they are not."""

from collections.abc import Iterable
from typing import Any

import orjson


def are_same(first: Any, second: Any) -> bool:
    """Tell whether two values are the same JSON, whatever the order of keys."""
    return _canonical(first) == _canonical(second)


def is_one_of(value: Any, others: Iterable[Any]) -> bool:
    """Tell whether a value is the same JSON as one of the others."""
    return any(are_same(value, other) for other in others)


def texts_of(value: Any) -> list[str]:
    """Return every text in a JSON value, names of fields included."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for name, item in value.items() for text in (name, *texts_of(item))]
    return [text for item in value for text in texts_of(item)] if isinstance(value, list) else []


def _canonical(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
