"""Importance fades while nobody sees a fact again (DR9). Never stored: a stored product would fade twice."""

from datetime import UTC, datetime

FADES_AFTER, HALF_LIFE = 30.0, 45.0
"""Days."""
MIN_IMPORTANCE = 0.10


def effective_importance(importance: float, last_seen_at: datetime) -> float:
    """Return importance times 0.5^((days unseen - 30) / 45) after 30 days, not below 0.10.

    What was stored below that stays as it was stored.
    """
    unseen = (datetime.now(UTC) - last_seen_at).total_seconds() / 86_400
    faded: float = importance * 0.5 ** (max(0.0, unseen - FADES_AFTER) / HALF_LIFE)
    return max(faded, min(importance, MIN_IMPORTANCE))
