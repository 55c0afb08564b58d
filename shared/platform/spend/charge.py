"""A charge: what one call to a model used and cost, who pays for it, and its purpose."""

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
    """How certain the numbers of a charge are."""

    RESERVED = "reserved"  # the call is running: the numbers are its upper bound
    SETTLED = "settled"  # the numbers are those of the provider
    ESTIMATED = "estimated"  # nobody reported the usage: its upper bound counts


class Purpose(StrEnum):
    """What models are called for, apart from other dream passes, whose purpose is the name of the pass."""

    ENRICHMENT = "enrichment"
    MINING = "mining"  # the pass that mines facts
    PROMOTION = "promotion"
    EMBEDDING = "embedding"
    SUMMARY = "summary"
    JUDGE = "judge"  # verdicts on what is proposed to be stored
    SESSION = "session"  # calls that agents made and reported themselves


def purpose_of_pass(name: DreamPass) -> str:
    """Return what a dream pass calls models for."""
    return Purpose.MINING if name is DreamPass.MINE_FACTS else name


PURPOSES = tuple(dict.fromkeys([*Purpose, *map(purpose_of_pass, DreamPass)]))


@dataclass(frozen=True, slots=True)
class Payer:
    """Who pays for a call, and its purpose."""

    tenant: str
    agent_id: str | None
    user_id: str | None
    purpose: str


def budget_scopes(agent_id: str | None, purpose: str) -> tuple[str, ...]:
    """Return the budget scopes that pay for a call of an agent for a purpose."""
    agent = () if agent_id is None else (f"agent/{agent_id}",)
    return ("tenant", *agent, f"purpose/{purpose}")


@dataclass(frozen=True, slots=True)
class ReportedUsage:
    """A call that an agent made itself. Without a usage id it is identified by its turn's number."""

    model: str
    usage: Usage
    usage_id: str | None = None


def parse_reported_usage(usage_id: str, model: str, usage_object: dict[str, Any]) -> ReportedUsage:
    """Parse the usage that was reported for a session. Raise errors.Invalid naming the invalid field."""
    valid_id = _check_usage_id(usage_id, "usage_id")
    return ReportedUsage(check_model(model), usage.parse_usage(usage_object), valid_id)


def parse_turn_usage(usage_object: dict[str, Any] | None) -> ReportedUsage | None:
    """Parse the usage that came with a turn; `id` and `model` may be inside it.

    Raise errors.Invalid naming the invalid field.
    """
    if usage_object is None:
        return None
    model, usage_id = usage_object.get("model", UNKNOWN_MODEL), usage_object.get("id")
    for name, value in (("model", model), ("id", usage_id)):
        if not isinstance(value, str | None):
            raise errors.Invalid(f"usage.{name}", "must be a text")
    valid_id = None if usage_id is None else _check_usage_id(usage_id, "usage.id")
    valid_model = check_model(model or UNKNOWN_MODEL, "usage.model")
    return ReportedUsage(valid_model, usage.parse_usage(usage_object), valid_id)


def turn_usage_id(seq: int) -> str:
    """Return the usage id of a turn whose usage has none of its own."""
    return f"{_TURN}{seq}"


def check_model(name: str, field: str = "model") -> str:
    """Return a model's name if it is printable and has at most 128 characters.

    Raise errors.Invalid otherwise.
    """
    validation.check_text(name, field, MAX_MODEL)
    if name != name.strip() or not name.isprintable():
        raise errors.Invalid(field, "must be printable, without spaces around it")
    return name


def _check_usage_id(value: str, field: str) -> str:
    validation.check_text(value, field, MAX_ID)
    if not value.isprintable() or value.startswith(_TURN):
        raise errors.Invalid(field, f"must be printable and not begin with '{_TURN}'")
    return value


class Charge(BaseModel):
    """A stored charge."""

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
        """The tokens of the charge; those of a reservation are an upper bound."""
        return Usage(self.input_tokens, self.output_tokens, self.cached_tokens)

    def to_json(self) -> dict[str, Any]:
        """Return a reported charge as JSON. The cost keeps all its digits."""
        names = {"usage_id", "model", "input_tokens", "output_tokens", "cached_tokens", "created_at"}
        return self.model_dump(mode="json", include=names) | {"cost_usd": money.to_json_number(self.cost_usd)}


def columns_of(tokens: Usage) -> dict[str, int]:
    """Return tokens as the columns of a charge."""
    return {"input_tokens": tokens.input, "output_tokens": tokens.output, "cached_tokens": tokens.cached}
