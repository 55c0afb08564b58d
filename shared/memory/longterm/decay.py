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
    return decayed(importance, (datetime.now(UTC) - last_seen_at).total_seconds())


def decayed(importance: float, seconds_unseen: float) -> float:
    """Return the effective importance of what was last seen so many seconds ago."""
    days = seconds_unseen / 86_400 - DECAY_AFTER_DAYS
    if days <= 0:
        return float(importance)
    half_lives = days / HALF_LIFE_DAYS
    return max(float(importance * 0.5**half_lives), min(importance, MIN_IMPORTANCE))
