"""SD3: whether a call fits a budget, as a pure function."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from shared.foundation import errors
from shared.platform.spend.budget import ZERO_AMOUNT, Amount, Budget, Period, check_scope

_DAY = datetime(2026, 1, 31, tzinfo=UTC)


def _budget(**fields: Any) -> Budget:
    row: dict[str, Any] = {
        "tenant": "t",
        "scope": "tenant",
        "period": Period.DAY,
        "id": "1",
        "limit_usd": None,
        "limit_tokens": None,
        "allow_unpriced": False,
        "window_started_at": _DAY,
        "used_usd": Decimal(0),
        "used_tokens": 0,
        "reserved_usd": Decimal(0),
        "reserved_tokens": 0,
    }
    return Budget(**row | fields)


def test_sd3_a_call_fits_up_to_the_limit_and_not_a_digit_beyond() -> None:
    budget = _budget(limit_usd=Decimal(1), used_usd=Decimal("0.5"), reserved_usd=Decimal("0.25"))
    assert budget.refusal_reason(Amount(Decimal("0.25"), 9)) is None
    refusal = budget.refusal_reason(Amount(Decimal("0.250000000001"), 9))
    assert refusal == "over budget 'tenant' per day: 0.25 of 1 USD left"


def test_sd3_a_limit_in_tokens_counts_used_and_reserved_ones() -> None:
    budget = _budget(limit_tokens=100, used_tokens=40, reserved_tokens=50)
    assert budget.refusal_reason(Amount(None, 10)) is None
    assert budget.refusal_reason(Amount(None, 11)) == "over budget 'tenant' per day: 10 of 100 tokens left"


def test_sd3_without_a_price_no_call_is_made_under_a_limit_in_money_unless_allowed() -> None:
    unpriced = Amount(None, 5)
    assert "no price" in (_budget(limit_usd=Decimal(9)).refusal_reason(unpriced) or "")
    assert _budget(limit_usd=Decimal(9), allow_unpriced=True).refusal_reason(unpriced) is None
    assert _budget(limit_tokens=9).refusal_reason(unpriced) is None


def test_sd3_a_budget_read_in_a_new_window_is_empty() -> None:
    row: Any = _budget(used_usd=Decimal(3), used_tokens=7, reserved_tokens=1).model_dump()
    now = datetime(2026, 2, 1, tzinfo=UTC)
    current = Budget.from_row(row | {"window_now": now})
    assert (current.used_usd, current.used_tokens, current.reserved_tokens) == (Decimal(0), 0, 0)
    assert current.window_started_at == now
    assert Budget.from_row(row | {"window_now": _DAY}).used_tokens == 7


@pytest.mark.parametrize(
    ("period", "starts", "ends"),
    [
        (Period.DAY, _DAY, datetime(2026, 2, 1, tzinfo=UTC)),
        (Period.MONTH, datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)),
        (Period.MONTH, datetime(2026, 12, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)),
        (Period.MONTH, datetime(2028, 2, 1, tzinfo=UTC), datetime(2028, 3, 1, tzinfo=UTC)),
    ],
)
def test_sd3_windows_are_days_and_months_of_utc(period: Period, starts: datetime, ends: datetime) -> None:
    assert _budget(period=period, window_started_at=starts).window_ends_at == ends


def test_sd3_the_nearer_limit_counts_for_the_alert() -> None:
    budget = _budget(limit_usd=Decimal(10), limit_tokens=100)
    assert budget.with_added(Amount(Decimal(8), 10), ZERO_AMOUNT).ratio == 0.8
    assert budget.with_added(Amount(Decimal(1), 90), ZERO_AMOUNT).ratio == 0.9
    assert _budget(limit_usd=Decimal(0)).ratio == 1.0
    assert _budget().ratio == 0.0


def test_sd3_amounts_are_added_to_the_used_and_to_the_reserved_ones_apart() -> None:
    first = _budget().with_added(Amount(Decimal(3), 30), Amount(Decimal(2), 20))
    budget = first.with_added(ZERO_AMOUNT, Amount(Decimal(-2), -20)).with_added(Amount(None, 5), ZERO_AMOUNT)
    assert (first.reserved_usd, first.reserved_tokens) == (Decimal(2), 20)
    assert (budget.used_usd, budget.used_tokens) == (Decimal(3), 35)
    assert (budget.reserved_usd, budget.reserved_tokens) == (Decimal(0), 0)


def _shown(budget: Budget) -> dict[str, Any]:
    shown: dict[str, Any] = orjson.loads(orjson.dumps(budget.to_json()))
    return shown


def test_sd3_what_remains_is_shown_for_each_limit_and_is_never_negative() -> None:
    used = {"used_usd": Decimal(3), "used_tokens": 30, "reserved_usd": Decimal(2), "reserved_tokens": 20}
    within = _shown(_budget(**used, limit_usd=Decimal(6), limit_tokens=60))
    assert (within["remaining_usd"], within["remaining_tokens"]) == (1, 10)
    beyond = _shown(_budget(**used, limit_usd=Decimal(4), limit_tokens=40))
    assert (beyond["remaining_usd"], beyond["remaining_tokens"]) == (0, 0)
    unlimited = _shown(_budget(**used))
    assert (unlimited["remaining_usd"], unlimited["remaining_tokens"]) == (None, None)


def test_sd3_a_budget_does_not_change() -> None:
    with pytest.raises(ValidationError):
        _budget().used_tokens = 0


@pytest.mark.parametrize("scope", ["tenant", "agent/support", "agent/a@b.c/x", "purpose/consolidate"])
def test_sd3_a_budget_is_for_the_tenant_an_agent_or_a_purpose(scope: str) -> None:
    assert check_scope(scope, "t") == scope


@pytest.mark.parametrize(
    "scope", ["", "tenants", "agent", "agent/", "agent/ ", "purpose/", "purpose/enrichmnt", "user/ada"]
)
def test_sd3_any_other_scope_is_refused(scope: str) -> None:
    with pytest.raises(errors.Invalid):
        check_scope(scope, "t")
