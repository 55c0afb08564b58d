"""Request and response bodies of the routes on turns."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from services.gateway.api_model import ApiModel, BatchApiModel, Count, Flag, RequestedTrust, example
from shared.conversation.turns.turn import TurnDraft
from shared.foundation.exact_json import ExactJson
from shared.foundation.origin import Origin
from shared.foundation.roles import Role
from shared.platform.spend.charge import parse_turn_usage

Item = Annotated[Any, Field(description="The turn as a provider sent it: any JSON, returned without loss.")]
_TURN = {"role": "assistant", "content": "Noted: no flights on Fridays."}
_STORED = _TURN | {
    "session_id": "support-42",
    "seq": 2,
    "speaker": None,
    "created_at": "2026-11-20T09:00:00Z",
    "metadata": {},
    "item": {"type": "message", "status": "completed"},
    "version": 1_795_334_819_000_000,
    "edited_at": None,
    "origin": {"channel": "turn", "trust": "outside"},
}


class TurnBody(ApiModel):
    """A turn to append. The role `system` needs a key that is unbound or bound to an agent alone."""

    model_config = example(_TURN)

    role: Role
    content: str
    speaker: str | None = None
    created_at: datetime | None = None
    metadata: dict[str, str] = {}
    item: Item = None
    usage: dict[str, Any] | None = None
    trust: RequestedTrust = None

    def draft(self, body: ExactJson, *path: str | int) -> TurnDraft:
        """Return the turn to append, with its usage. Raise errors.Invalid if it breaks a rule.

        `path` is where the turn stands in the body of the request.
        """
        item = None if self.item is None else body.text_at(*path, "item", field="item")
        draft = TurnDraft(**self.model_dump(exclude={"usage", "item"}), item=item).validated()
        return draft.model_copy(update={"usage": parse_turn_usage(self.usage)})


class TurnsBody(BatchApiModel):
    """Turns to append, in order. Each is accepted or refused on its own."""

    model_config = example({"turns": [{"role": "user", "content": "Hello"}]})

    turns: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=1000)]


class TurnPatch(ApiModel):
    """Fields to change. Fields that are not named stay as they are; null removes a speaker or an item."""

    model_config = example({"content": "Noted: no flights on Fridays and Saturdays."})

    content: str | None = None
    speaker: str | None = None
    metadata: dict[str, str] | None = None
    item: Item = None
    created_at: datetime | None = None

    def fields(self, body: ExactJson) -> dict[str, Any]:
        """Return the named fields, with the item as JSON text."""
        fields = {name: getattr(self, name) for name in self.model_fields_set}
        if self.item is not None:
            fields["item"] = body.text_at("item", field="item")
        return fields


class TurnSearchBody(ApiModel):
    """A search over turns."""

    model_config = example({"query": "what did we say about the trip to Paris?"})

    query: Annotated[str, Field(min_length=1, max_length=16_000)]
    agent_id: str | None = None
    user_id: str | None = None
    session_id: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    limit: Annotated[Count, Field(ge=1, le=100)] = 10
    explain: Flag = False


class TurnResponse(ApiModel):
    """A turn. Its version is also its entity tag; `edited_at` is null until it is edited."""

    model_config = example(_STORED)

    session_id: str
    seq: int
    role: Role
    speaker: str | None
    content: str
    created_at: datetime
    metadata: dict[str, str]
    origin: Origin
    item: Item
    version: int
    edited_at: datetime | None


class TurnsResponse(ApiModel):
    """Turns in their order. `next_cursor` continues the log, and is null for the window."""

    model_config = example({"results": [_STORED], "next_cursor": None})

    results: list[TurnResponse]
    next_cursor: str | None


class AppendedTurn(ApiModel):
    """The number and the version of a turn that was appended."""

    model_config = example({"seq": 2, "version": 1_795_334_819_000_000})

    seq: int
    version: int


class PoppedTurn(ApiModel):
    """The turn that was the last one, or null if there was none."""

    model_config = example({"turn": _STORED})

    turn: TurnResponse | None


class DeletedTurn(ApiModel):
    """Whether there was a turn to delete."""

    model_config = example({"session_id": "support-42", "seq": 2, "deleted": True})

    session_id: str
    seq: int
    deleted: bool


class ClearedTurns(ApiModel):
    """How many turns were deleted."""

    model_config = example({"session_id": "support-42", "deleted": 2})

    session_id: str
    deleted: int
