"""Categories that mean something: what is kept below them is recalled and dreamt over in a way of its own.

Callers and models write them in any case, so they are compared without it, here and nowhere else.
"""

from collections.abc import Collection

ANTI_PATTERNS = "anti-patterns"
EPISODES = "episodic"
PREFERENCES = "user-preferences"
ACTIVE_PLANS = "active-plans"
ANTI_PATTERN_TAG = "anti-pattern"


def is_below(root: str, category: str | None) -> bool:
    """Tell whether a category is `root` or below it, in any case."""
    return category is not None and f"{category}/".casefold().startswith(f"{root}/".casefold())


def is_anti_pattern(category: str | None, tags: Collection[str]) -> bool:
    """Tell whether a memory of this category and these tags is kept as an anti-pattern: either says so."""
    return ANTI_PATTERN_TAG in tags or is_below(ANTI_PATTERNS, category)
