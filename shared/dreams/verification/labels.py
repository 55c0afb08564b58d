"""Clean the categories and tags that models write. None of them is refused."""

from collections.abc import Iterable
from typing import Any

from shared.foundation import errors, validation
from shared.foundation.categories import is_below


def sanitize_tags(values: Iterable[Any], *first: str) -> tuple[str, ...]:
    """Return `first` and then the valid tags of a model, without repeats, as many as a memory may have."""
    tags = (value.strip() for value in values if isinstance(value, str))
    return tuple(dict.fromkeys([*first, *filter(_is_tag, tags)]))[: validation.MAX_TAGS]


def _is_tag(tag: str) -> bool:
    try:
        validation.check_tags([tag])
    except errors.Invalid:
        return False
    return True


def category_below(root: str, value: Any, default: str) -> str:
    """Return a model's category if it lies below `root`, and `default` otherwise.

    A single segment ("deployment") is put below the root.
    """
    category = validation.sanitize_category(value)
    if category is None or category.casefold() == root:
        return default
    if is_below(root, category):
        return category
    return default if "/" in category else validation.sanitize_category(f"{root}/{category}") or default
