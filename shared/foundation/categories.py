"""Categories with a meaning of their own: memories below them are recalled and consolidated differently.

Callers and models write categories in any letter case, so comparisons ignore it. All comparisons with
these categories are made by the functions of this module.
"""

from collections.abc import Collection

ANTI_PATTERNS = "anti-patterns"
EPISODES = "episodic"
PREFERENCES = "user-preferences"
ACTIVE_PLANS = "active-plans"
SAFETY = "safety"
ANTI_PATTERN_TAG = "anti-pattern"


def is_below(root: str, category: str | None) -> bool:
    """Tell whether a category is `root`, which is in lower case, or lies below it."""
    if category is None:
        return False
    folded = category.casefold()
    return folded.startswith(root) and (folded == root or folded[len(root)] == "/")


def is_anti_pattern(category: str | None, tags: Collection[str]) -> bool:
    """Tell whether a memory is an anti-pattern, by its category or by its tags."""
    return ANTI_PATTERN_TAG in tags or is_below(ANTI_PATTERNS, category)
