"""A charge: what one call to a model used and cost, who pays, and what for."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict
from sqlalchemy import RowMapping

from shared.foundation import errors, validation
from shared.foundation.stages import DreamPass
from shared.platform.spend import money, usage
from shared.platform.spend.usage import Usage

MAX_ID = 128
MAX_MODEL = 128
UNKNOWN_MODEL = "unknown"
_TURN = "turn#"


class ChargeState(StrEnum):
    """How sure the numbers of a charge are."""

    RESERVED = "reserved"  # the call is under way: the most that it can cost
    SETTLED = "settled"  # what the provider says
    ESTIMATED = "estimated"  # nobody said what was used: the most that it can have cost


class Purpose(StrEnum):
    """What models are asked for, besides the passes of a dream, which go by their own names."""

    ENRICHMENT = "enrichment"
    EMBEDDING = "embedding"
    SUMMARY = "summary"
    SESSION = "session"  # what agents report of their own calls


PURPOSES = (*Purpose, *DreamPass)


@dataclass(frozen=True, slots=True)
class Payer:
    """Who pays for a call, and what it is for."""

    tenant: str
    agent_id: str | None
    user_id: str | None
    purpose: str


def budget_scopes(agent_id: str | None, purpose: str) -> tuple[str, ...]:
    """Return the scopes whose budgets pay for what an agent does for a purpose."""
    agent = () if agent_id is None else (f"agent/{agent_id}",)
    return ("tenant", *agent, f"purpose/{purpose}")


@dataclass(frozen=True, slots=True)
class ReportedUsage:
    """A call that an agent made itself; without an id of its own it goes by its turn's number."""

    model: str
    usage: Usage
    usage_id: str | None = None


def parse_reported_usage(usage_id: str, model: str, told: dict[str, Any]) -> ReportedUsage:
    """Read what was reported of a session; raise errors.Invalid naming the field."""
    return ReportedUsage(check_model(model), usage.parse_usage(told), _checked_id(usage_id, "usage_id"))


def parse_turn_usage(told: dict[str, Any] | None) -> ReportedUsage | None:
    """Read the usage that came with a turn; `id` and `model` may stand inside it."""
    if told is None:
        return None
    model, usage_id = told.get("model", UNKNOWN_MODEL), told.get("id")
    for name, value in (("model", model), ("id", usage_id)):
        if not isinstance(value, str | None):
            raise errors.Invalid(f"usage.{name}", "must be a text")
    checked = None if usage_id is None else _checked_id(usage_id, "usage.id")
    return ReportedUsage(check_model(model or UNKNOWN_MODEL, "usage.model"), usage.parse_usage(told), checked)


def turn_usage_id(seq: int) -> str:
    """Return the usage id of a turn whose usage has none of its own."""
    return f"{_TURN}{seq}"


def check_model(name: str, field: str = "model") -> str:
    """Return a model's name if it is one: printable, on one line, at most 128 characters."""
    validation.check_text(name, field, MAX_MODEL)
    if name != name.strip() or not name.isprintable():
        raise errors.Invalid(field, "must be printable, without spaces around it")
    return name


def _checked_id(value: str, field: str) -> str:
    validation.check_text(value, field, MAX_ID)
    if not value.isprintable() or value.startswith(_TURN):
        raise errors.Invalid(field, f"must be printable and not begin with '{_TURN}'")
    return value


class Charge(BaseModel):
    """A charge as it stands in Postgres."""

    model_config = ConfigDict(frozen=True)

    tenant: str
    id: str
    session_id: str | None
    usage_id: str | None
    agent_id: str | None
    user_id: str | None
    purpose: str
    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: Decimal | None
    state: ChargeState
    created_at: datetime

    @classmethod
    def from_row(cls, row: RowMapping) -> "Charge":
        """Read a charge from a row of `charge`."""
        return cls.model_validate({**row})

    @property
    def usage(self) -> Usage:
        """The tokens, those of a reservation being the most that there can be."""
        return Usage(self.input_tokens, self.output_tokens, self.cached_tokens)

    def to_json(self) -> dict[str, Any]:
        """Return a reported charge as JSON, the cost with its own digits."""
        names = {"usage_id", "model", "input_tokens", "output_tokens", "cached_tokens", "created_at"}
        return self.model_dump(mode="json", include=names) | {"cost_usd": money.to_json_number(self.cost_usd)}


def columns_of(used: Usage) -> dict[str, int]:
    """Return tokens as the columns of a charge."""
    return {"input_tokens": used.input, "output_tokens": used.output, "cached_tokens": used.cached}
