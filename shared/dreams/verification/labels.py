"""Categories and tags as models write them: cleaned, never refused."""

from collections.abc import Iterable
from typing import Any

from shared.foundation import errors, validation
from shared.foundation.categories import is_below


def sanitize_tags(offered: Iterable[Any], *first: str) -> tuple[str, ...]:
    """Return the usable ones of a model's tags, each once, behind `first`, as many as an entry may have."""
    named = (tag.strip() for tag in offered if isinstance(tag, str))
    return tuple(dict.fromkeys([*first, *filter(_is_tag, named)]))[: validation.MAX_TAGS]


def _is_tag(tag: str) -> bool:
    try:
        validation.check_tags([tag])
    except errors.Invalid:
        return False
    return True


def category_below(root: str, offered: Any, otherwise: str) -> str:
    """Return a model's category if it lies below `root`, and `otherwise` if not.

    A domain alone ("deployment") is put below the root.
    """
    category = validation.sanitize_category(offered)
    if category is None or category.casefold() == root:
        return otherwise
    if is_below(root, category):
        return category
    return otherwise if "/" in category else validation.sanitize_category(f"{root}/{category}") or otherwise
