"""DR1: with a cron expression, a scope is due at the expression's next time in UTC."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from shared.jobs.dream_schedule import next_cron_time

SATURDAY_NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("cron", "due"),
    [
        ("30 3 * * *", datetime(2026, 11, 22, 3, 30, tzinfo=UTC)),
        ("0 * * * *", datetime(2026, 11, 21, 13, tzinfo=UTC)),
        ("*/5 12 * * *", datetime(2026, 11, 21, 12, 5, tzinfo=UTC)),
        ("0 2 * * MON-FRI", datetime(2026, 11, 23, 2, tzinfo=UTC)),
        ("0 0 29 2 *", datetime(2028, 2, 29, tzinfo=UTC)),
    ],
)
def test_the_next_time_is_after_the_activity_and_never_equal_to_it(cron: str, due: datetime) -> None:
    assert next_cron_time(cron, SATURDAY_NOON) == due
    assert due > SATURDAY_NOON


def test_without_a_cron_expression_there_is_no_next_time() -> None:
    assert next_cron_time(None, datetime.now(timezone(timedelta(hours=2)))) is None
