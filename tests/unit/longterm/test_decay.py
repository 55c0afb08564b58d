"""DR9: importance fades after 30 days unseen, halves every 45, and stops at 0.10."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.memory.longterm.decay import effective_importance


@pytest.mark.parametrize(
    ("importance", "days", "expected"),
    [
        (0.8, 0, 0.8),
        (0.8, 30, 0.8),
        (0.8, 75, 0.4),
        (0.8, 120, 0.2),
        (0.8, 4000, 0.1),
        (0.05, 4000, 0.05),
        (1.0, -5, 1.0),
    ],
)
def test_importance_decays_by_the_days_since_the_memory_was_last_seen(
    importance: float, days: float, expected: float
) -> None:
    seen = datetime.now(UTC) - timedelta(days=days)

    assert effective_importance(importance, seen) == pytest.approx(expected, abs=1e-6)
