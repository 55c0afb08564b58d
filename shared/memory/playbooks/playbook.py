"""Playbooks as they are recorded, stored and returned by the API."""

import hashlib
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

import orjson
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from shared.conversation.scratchpad.near_identical import words_of
from shared.foundation import errors, validation
from shared.foundation.origin import UNKNOWN, Origin, Trust
from shared.foundation.scope import Scope

MAX_USER_QUERY = 4000
MAX_SLOTS_BYTES = 16_384
MAX_PARAMETERS_BYTES = 4096
MAX_TOOL_CALLS = 32


class Outcome(StrEnum):
    """How a flow ended: its last state, or what its skill returned. Callers write it in any case."""

    COMPLETED = "completed"
    SUCCESS = "success"
    FAILURE = "failure"
    UNCERTAIN = "uncertain"
    INVALID = "invalid"


COMPLETE = frozenset({Outcome.COMPLETED, Outcome.SUCCESS})
"""The outcomes of a flow that was completed."""


class Reason(StrEnum):
    """Why a playbook is promoted, and so found by searches, or why it is not."""

    SATISFIED = "satisfied"  # the user said so
    CONTINUED = "continued"  # the user's next turn in the session was no correction
    REPORTED = "reported"  # without a session: nothing is known but that the flow was completed
    NOT_COMPLETED = "not_completed"
    DISSATISFIED = "dissatisfied"  # the user said so
    CORRECTED = "corrected"  # the user's next turn in the session was a correction
    WAITING = "waiting"  # the user has said nothing in the session since
    SESSION_ENDED = "session_ended"  # without another word of the user


PROMOTING = frozenset({Reason.SATISFIED, Reason.CONTINUED, Reason.REPORTED})
"""The reasons for which a playbook is promoted."""


class FlowTurns(NamedTuple):
    """The numbers of the first and the last turn of a flow in its session."""

    first_seq: int
    last_seq: int


class ToolCall(BaseModel):
    """A tool that was called, and the parameters that mattered."""

    model_config = ConfigDict(frozen=True)

    tool_id: str
    parameters: dict[str, Any] = Field(default_factory=dict)


class PlaybookDraft(BaseModel):
    """A playbook that is to be recorded. `satisfied` is what the user said of it; None: nothing."""

    model_config = ConfigDict(frozen=True)

    flow_dact: str
    slots: dict[str, Any]
    tool_calls: tuple[ToolCall, ...]
    outcome: str
    user_query: str
    satisfied: bool | None = None
    # The trust that the caller asks for, which is never more than the server gives.
    trust: Trust | None = None

    def validated(self) -> "PlaybookDraft":
        """Return the draft as it will be stored; raise errors.Invalid that names the field and the rule."""
        validation.check_technical_id(self.flow_dact, "flow_dact")
        validation.check_text(self.user_query, "user_query", MAX_USER_QUERY)
        validation.check_json(self.slots, "slots", MAX_SLOTS_BYTES)
        if self.outcome.lower() not in {*Outcome}:
            raise errors.Invalid("outcome", f"must be one of {', '.join(Outcome)}")
        if len(self.tool_calls) > MAX_TOOL_CALLS:
            raise errors.TooLarge("tool_calls", f"must be at most {MAX_TOOL_CALLS} calls")
        for position, call in enumerate(self.tool_calls):
            field = f"tool_calls.{position}"
            validation.check_technical_id(call.tool_id, f"{field}.tool_id")
            validation.check_json(call.parameters, f"{field}.parameters", MAX_PARAMETERS_BYTES)
        return self

    @property
    def is_complete(self) -> bool:
        """Whether the flow was completed."""
        return Outcome(self.outcome.lower()) in COMPLETE


class Playbook(BaseModel):
    """A playbook as stored in Postgres. Searches find it only if it is promoted."""

    model_config = ConfigDict(frozen=True)

    id: str
    flow_dact: str
    slots: dict[str, Any]
    tool_calls: list[ToolCall]
    outcome: str
    user_query: str
    promoted: bool
    reason: Reason
    session_id: str | None
    agent_id: str
    user_id: str | None
    created_at: datetime
    origin: Origin = UNKNOWN
    # The turns of the flow in the session: the one in which the user asked, and the last one. What the user
    # says next decides about the playbook.
    first_seq: int | None = Field(default=None, exclude=True)
    last_seq: int | None = Field(default=None, exclude=True)
    tenant: str = Field(exclude=True)

    @property
    def turns(self) -> FlowTurns | None:
        """The turns of the flow; None for a playbook that names no session."""
        if self.last_seq is None:
            return None
        return FlowTurns(self.last_seq if self.first_seq is None else self.first_seq, self.last_seq)

    @classmethod
    def from_row(cls, row: RowMapping) -> "Playbook":
        """Build a playbook from a row of `playbook`."""
        fields: dict[str, Any] = {**row}
        return cls.model_validate(fields | {"origin": Origin.from_row(fields)})

    @property
    def scope(self) -> Scope:
        """The scope that the playbook belongs to."""
        return Scope(self.tenant, self.agent_id, self.user_id)


def words_digest(user_query: str) -> bytes:
    """Return a digest that two queries share if they have the same words in the same order.

    What counts as a word is said in `near_identical`: neither case, punctuation nor "please" counts.
    """
    return hashlib.sha256("\x1f".join(words_of(user_query)).encode()).digest()


def id_tombstone(playbook_id: str) -> str:
    """Return the text under which a deleted playbook is remembered."""
    return orjson.dumps(["playbook id", playbook_id]).decode()


def query_tombstone(user_query: str) -> str:
    """Return the text under which the query of deleted playbooks is remembered: by its words."""
    return orjson.dumps(["playbook", words_digest(user_query).hex()]).decode()
