"""Decide which memories no model may end: what a mistake about could cost health, money or an account.

A sentence about somebody else, a joke or a visit can read like a change. Little is lost if most facts are
closed by mistake: they stay readable, and a caller can open them. These stay valid, beside what was said
later, until a caller says otherwise.
"""

from shared.foundation.categories import SAFETY, is_below
from shared.foundation.sensitive_topics import is_about_health, is_sensitive, is_sensitive_name
from shared.memory.longterm.memory import Memory

MIN_IMPORTANCE = 0.8
MIN_REINFORCEMENT = 3


def must_stay_open(memory: Memory) -> bool:
    """Tell whether only a caller may close a memory."""
    return (
        memory.importance >= MIN_IMPORTANCE
        or memory.reinforcement_count >= MIN_REINFORCEMENT
        or is_about_safety(memory)
        or is_sensitive(memory.content)
        or any(map(is_sensitive_name, _labels(memory)))
    )


def is_about_safety(memory: Memory) -> bool:
    """Tell whether a memory is about allergies, medication or health, by its text, category or tags."""
    texts = (memory.content, *(label.replace("_", " ").replace("-", " ") for label in _labels(memory)))
    return is_below(SAFETY, memory.category) or any(map(is_about_health, texts))


def _labels(memory: Memory) -> list[str]:
    return [memory.category or "", *memory.tags]
