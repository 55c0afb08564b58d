"""Tell which memories are matters of safety: a mistake about them could cost health, money or an account.

Without a trusted judge no pass ends one. A sentence about somebody else, a joke or a visit can read like a
change. Little is lost if most facts are closed by mistake: they stay readable, and a caller can open them.
"""

from shared.foundation.categories import SAFETY, is_below
from shared.foundation.sensitive_topics import is_about_health, is_sensitive, is_sensitive_name
from shared.memory.longterm.memory import Memory

MIN_IMPORTANCE = 0.8
MIN_REINFORCEMENT = 3


def is_safety_matter(memory: Memory) -> bool:
    """Tell whether a memory is closed only by a trusted judge or a caller."""
    return (
        memory.importance >= MIN_IMPORTANCE
        or memory.reinforcement_count >= MIN_REINFORCEMENT
        or _is_about_health(memory)
        or is_sensitive(memory.content)
        or any(map(is_sensitive_name, _labels(memory)))
    )


def _is_about_health(memory: Memory) -> bool:
    """Tell whether a memory is about allergies, medication or health, by its text, category or tags."""
    texts = (memory.content, *(label.replace("_", " ").replace("-", " ") for label in _labels(memory)))
    return is_below(SAFETY, memory.category) or any(map(is_about_health, texts))


def _labels(memory: Memory) -> list[str]:
    return [memory.category or "", *memory.tags]
