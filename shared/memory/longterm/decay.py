"""Importance decay: the importance of a memory falls while nothing confirms it.

The decayed value is computed on every read and never stored, because a stored value would decay twice.
"""

from datetime import UTC, datetime

DECAY_AFTER_DAYS = 30.0
HALF_LIFE_DAYS = 45.0
MIN_IMPORTANCE = 0.10


def effective_importance(importance: float, last_seen_at: datetime) -> float:
    """Return importance · 0.5^((days since last seen - 30) / 45) after 30 days, not below 0.10.

    An importance that was stored below 0.10 does not decay.
    """
    days_unseen = (datetime.now(UTC) - last_seen_at).total_seconds() / 86_400
    half_lives = max(0.0, days_unseen - DECAY_AFTER_DAYS) / HALF_LIFE_DAYS
    decayed: float = importance * 0.5**half_lives
    return max(decayed, min(importance, MIN_IMPORTANCE))
