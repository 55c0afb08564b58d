"""Budgets: how much may be spent in a day or a month (UTC), and whether one more call fits.

Judging is a pure function over budgets that are locked: all that apply are held in one order, asked
one after the other, and added to, in one short transaction. One UPDATE that checks as it adds would
be a statement less, but it can't say which budget refused nor lock several in an order that all
share. What a budget has used counts everything that is booked under it, also what agents report of
their own calls; refused are only the calls that Loci makes itself.
"""

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
    """How long a window of a budget is."""

    DAY = "day"
    MONTH = "month"


@dataclass(frozen=True, slots=True)
class Amount:
    """Money and tokens; `usd` is None where the price is unknown."""

    usd: Decimal | None
    tokens: int


ZERO_AMOUNT = Amount(ZERO, 0)


class Budget(BaseModel):
    """A budget with what its window has used and reserved."""

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
        """Read a budget from its row, in the window of now (the row's `window_now`)."""
        found = cls.model_validate({**row})
        if found.window_started_at >= row["window_now"]:
            return found
        fresh = dict.fromkeys(_COUNTERS, 0) | {"used_usd": ZERO, "reserved_usd": ZERO}
        return found.model_copy(update=fresh | {"window_started_at": row["window_now"]})

    @property
    def window_ends_at(self) -> datetime:
        """When the next window begins."""
        if self.period is Period.DAY:
            return self.window_started_at + timedelta(days=1)
        return (self.window_started_at + timedelta(days=32)).replace(day=1)

    @property
    def ratio(self) -> float:
        """The part that is used of the limit that is nearer; of a limit of nothing, all of it."""
        return max(_part(self.used_usd, self.limit_usd), _part(Decimal(self.used_tokens), self.limit_tokens))

    def refusal_reason(self, bound: Amount) -> str | None:
        """Say why a call that costs at most this doesn't fit, or None if it does."""
        if self.limit_usd is not None:
            if bound.usd is None and not self.allow_unpriced:
                return self._refusal("the model has no price")
            left = self.limit_usd - self.used_usd - self.reserved_usd
            if (bound.usd or ZERO) > left:
                return self._refusal(self._left(left, self.limit_usd, "USD"))
        if self.limit_tokens is not None:
            spare = self.limit_tokens - self.used_tokens - self.reserved_tokens
            if bound.tokens > spare:
                return self._refusal(self._left(Decimal(spare), self.limit_tokens, "tokens"))
        return None

    def _refusal(self, why: str) -> str:
        return f"over budget '{self.scope}' per {self.period}: {why}"

    def _left(self, left: Decimal, limit: Decimal | int, unit: str) -> str:
        return f"{money.to_text(max(left, ZERO))} of {money.to_text(Decimal(limit))} {unit} left"

    def with_added(self, used: Amount, reserved: Amount) -> "Budget":
        """Return the budget with more (or less) used and reserved."""
        counters = {
            "used_usd": money.total([self.used_usd, used.usd or ZERO]),
            "used_tokens": self.used_tokens + used.tokens,
            "reserved_usd": money.total([self.reserved_usd, reserved.usd or ZERO]),
            "reserved_tokens": self.reserved_tokens + reserved.tokens,
        }
        return self.model_copy(update=counters)

    def counter_columns(self) -> dict[str, Any]:
        """Return what changes with charges, as columns."""
        return {name: getattr(self, name) for name in ("window_started_at", *_COUNTERS)}

    def to_json(self) -> dict[str, Any]:
        """Return the budget as JSON, money with its own digits; remaining is null without a limit."""
        told = self.model_dump(mode="json", include={"scope", "period", "id", "allow_unpriced"})
        usd = {"used_usd": self.used_usd, "reserved_usd": self.reserved_usd, "limit_usd": self.limit_usd}
        gone = self.used_usd + self.reserved_usd
        usd["remaining_usd"] = None if self.limit_usd is None else max(self.limit_usd - gone, ZERO)
        spent = self.used_tokens + self.reserved_tokens
        left = None if self.limit_tokens is None else max(self.limit_tokens - spent, 0)
        tokens = {name: getattr(self, name) for name in ("limit_tokens", "used_tokens", "reserved_tokens")}
        window = {"window_starts": self.window_started_at, "window_ends": self.window_ends_at}
        exact = {name: money.to_json_number(amount) for name, amount in usd.items()}
        return told | exact | tokens | {"remaining_tokens": left, "used_ratio": self.ratio} | window


_COUNTERS = ("used_usd", "used_tokens", "reserved_usd", "reserved_tokens")


def _part(used: Decimal, limit: Decimal | int | None) -> float:
    if limit is None:
        return 0.0
    return float(used / limit) if limit else 1.0


def check_scope(scope: str, tenant: str) -> str:
    """Return a budget's scope if it is one: `tenant`, `agent/<agent_id>` or `purpose/<purpose>`."""
    kind, _, name = scope.partition("/")
    if scope == "tenant":
        return scope
    if kind == "agent" and name:
        return f"agent/{Scope(tenant, name).agent_id}"
    if kind == "purpose" and name in PURPOSES:
        return scope
    purposes = ", ".join(PURPOSES)
    raise errors.Invalid("scope", f"must be tenant, agent/<agent_id> or purpose/<one of {purposes}>")
