"""Budgets: how much may be spent in a day or a month (UTC), and whether one more call fits.

The check is a pure function over locked budgets: one short transaction locks all budgets that apply in
one order, checks them, and adds to them. A single UPDATE that checks while it adds would save a
statement, but it could not say which budget refused, nor lock several budgets in a common order. The
used amount of a budget contains everything that is booked under it, including the calls that agents
report themselves. Only calls that Loci makes can be refused.
"""

from calendar import monthrange
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict
from sqlalchemy import RowMapping

from shared.foundation import errors
from shared.foundation.scope import Scope
from shared.platform.spend import money
from shared.platform.spend.charge import PURPOSES

ZERO = Decimal(0)


class Period(StrEnum):
    """The length of a budget's window."""

    DAY = "day"
    MONTH = "month"


@dataclass(frozen=True, slots=True)
class Amount:
    """Money and tokens; `usd` is None where the price is unknown."""

    usd: Decimal | None
    tokens: int


ZERO_AMOUNT = Amount(ZERO, 0)


class Budget(BaseModel):
    """A budget, with the amounts that are used and reserved in its window."""

    model_config = ConfigDict(frozen=True)

    tenant: str
    scope: str
    period: Period
    id: str
    limit_usd: Decimal | None
    limit_tokens: int | None
    allow_unpriced: bool
    window_started_at: datetime
    used_usd: Decimal
    used_tokens: int
    reserved_usd: Decimal
    reserved_tokens: int

    @classmethod
    def from_row(cls, row: RowMapping) -> "Budget":
        """Read a budget from its row, in the current window, which begins at the row's `window_now`.

        The counters of an earlier window are not carried over.
        """
        budget = cls.model_validate({**row})
        if budget.window_started_at >= row["window_now"]:
            return budget
        new_window = dict.fromkeys(_COUNTERS, 0) | {"used_usd": ZERO, "reserved_usd": ZERO}
        return budget.model_copy(update=new_window | {"window_started_at": row["window_now"]})

    @property
    def window_ends_at(self) -> datetime:
        """The time at which the next window begins."""
        if self.period is Period.DAY:
            return self.window_started_at + timedelta(days=1)
        _, days = monthrange(self.window_started_at.year, self.window_started_at.month)
        return self.window_started_at + timedelta(days=days)

    @property
    def ratio(self) -> float:
        """The used part of the limit that is nearer, from 0 up. A limit of zero counts as used up."""
        usd_ratio = _used_ratio(self.used_usd, self.limit_usd)
        return max(usd_ratio, _used_ratio(Decimal(self.used_tokens), self.limit_tokens))

    def refusal_reason(self, bound: Amount) -> str | None:
        """Return why a call that costs at most `bound` does not fit, or None if it does."""
        if self.limit_usd is not None:
            if bound.usd is None and not self.allow_unpriced:
                return self._refusal("the model has no price")
            remaining_usd = self.limit_usd - self.used_usd - self.reserved_usd
            if (bound.usd or ZERO) > remaining_usd:
                return self._refusal(_remainder_text(remaining_usd, self.limit_usd, "USD"))
        if self.limit_tokens is not None:
            remaining_tokens = self.limit_tokens - self.used_tokens - self.reserved_tokens
            if bound.tokens > remaining_tokens:
                return self._refusal(_remainder_text(Decimal(remaining_tokens), self.limit_tokens, "tokens"))
        return None

    def _refusal(self, detail: str) -> str:
        return f"over budget '{self.scope}' per {self.period}: {detail}"

    def with_added(self, used: Amount, reserved: Amount) -> "Budget":
        """Return the budget with these amounts added; they may be negative."""
        counters = {
            "used_usd": money.total([self.used_usd, used.usd or ZERO]),
            "used_tokens": self.used_tokens + used.tokens,
            "reserved_usd": money.total([self.reserved_usd, reserved.usd or ZERO]),
            "reserved_tokens": self.reserved_tokens + reserved.tokens,
        }
        return self.model_copy(update=counters)

    def counter_columns(self) -> dict[str, Any]:
        """Return the columns that change with charges."""
        return {name: getattr(self, name) for name in ("window_started_at", *_COUNTERS)}

    def to_json(self) -> dict[str, Any]:
        """Return the budget as JSON.

        Money keeps all its digits. The remaining amounts are null where there is no limit.
        """
        properties = self.model_dump(mode="json", include={"scope", "period", "id", "allow_unpriced"})
        usd = {"used_usd": self.used_usd, "reserved_usd": self.reserved_usd, "limit_usd": self.limit_usd}
        taken_usd = self.used_usd + self.reserved_usd
        usd["remaining_usd"] = None if self.limit_usd is None else max(self.limit_usd - taken_usd, ZERO)
        taken_tokens = self.used_tokens + self.reserved_tokens
        remaining_tokens = None if self.limit_tokens is None else max(self.limit_tokens - taken_tokens, 0)
        tokens = {name: getattr(self, name) for name in ("limit_tokens", "used_tokens", "reserved_tokens")}
        rest = {
            "remaining_tokens": remaining_tokens,
            "used_ratio": self.ratio,
            "window_starts": self.window_started_at,
            "window_ends": self.window_ends_at,
        }
        exact = {name: money.to_json_number(amount) for name, amount in usd.items()}
        return properties | exact | tokens | rest


_COUNTERS = ("used_usd", "used_tokens", "reserved_usd", "reserved_tokens")


def _used_ratio(used: Decimal, limit: Decimal | int | None) -> float:
    if limit is None:
        return 0.0
    return float(used / limit) if limit else 1.0


def _remainder_text(remaining: Decimal, limit: Decimal | int, unit: str) -> str:
    return f"{money.to_text(max(remaining, ZERO))} of {money.to_text(Decimal(limit))} {unit} left"


def check_scope(scope: str, tenant: str) -> str:
    """Return a budget scope: `tenant`, `agent/<agent_id>` or `purpose/<purpose>`.

    Raise errors.Invalid for anything else.
    """
    kind, _, name = scope.partition("/")
    if scope == "tenant":
        return scope
    if kind == "agent" and name:
        return f"agent/{Scope(tenant, name).agent_id}"
    if kind == "purpose" and name in PURPOSES:
        return scope
    purposes = ", ".join(PURPOSES)
    raise errors.Invalid("scope", f"must be tenant, agent/<agent_id> or purpose/<one of {purposes}>")
