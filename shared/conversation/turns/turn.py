"""Turns as they are reported and stored, and the lines recalled with them."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from shared.foundation import errors, validation
from shared.foundation.origin import Channel, Origin, Trust, trust_of_role
from shared.foundation.roles import MAX_TURN_CONTENT, Role
from shared.foundation.scope import Caller
from shared.platform.spend.charge import ReportedUsage

MAX_ITEM = 256_000
_NULLABLE = frozenset({"speaker", "item"})
_READ_BY_MODELS = frozenset({"content", "speaker", "created_at"})


class SkillPart(StrEnum):
    """What a line that is no memory's shows of a skill."""

    CATALOGUE = "catalogue"  # the name and the summary, in the list of skills
    CONTENT = "content"  # because it matched the message
    SEE_ALSO = "see_also"  # because a skill that matched names it


class RecalledLine(BaseModel):
    """A memory, or a part of a skill, as it was injected with a turn.

    The line is stored, so that the model sees the same line in the following contexts. `version` is that of a
    skill whose content it shows.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    line: str
    is_episode: bool = False
    skill_part: SkillPart | None = None
    version: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the line as it is stored."""
        return self.model_dump(mode="json", exclude_none=True)


class TurnDraft(BaseModel):
    """A turn that is to be stored. `item` is JSON text: the turn as a provider sent it."""

    model_config = ConfigDict(frozen=True)

    role: Role
    content: str
    speaker: str | None = None
    created_at: datetime | None = None
    metadata: dict[str, str] = Field(default_factory=dict)
    item: str | None = None
    recalled: tuple[RecalledLine, ...] = ()
    # The usage of the model call that produced this turn; it is recorded together with the turn.
    usage: ReportedUsage | None = None
    # The trust that the caller asks for, which is never more than the server gives.
    trust: Trust | None = None

    def origin(self, caller: Caller) -> Origin:
        """Return the origin of the turn that a key reports.

        Raises errors.Invalid if the turn asks for more trust than it has.
        """
        trust = trust_of_role(self.role, caller.trust)
        return Origin(channel=Channel.TURN, trust=trust, key_id=caller.key_id).lowered(self.trust)

    def validated(self) -> "TurnDraft":
        """Return the turn as it will be stored; raise errors.Invalid that names the field and the rule."""
        names = ("content", "speaker", "created_at", "metadata", "item")
        return self.model_copy(update={name: _validated(name, getattr(self, name)) for name in names})


def _validated(name: str, value: Any) -> Any:
    """Return the value of a field as it will be stored. None stays None."""
    if value is None:
        return None
    match name:
        case "content":
            return validation.check_text(value, name, MAX_TURN_CONTENT)
        case "speaker":
            return validation.check_text(value, name, 128)
        case "created_at":
            return validation.check_time(value, name)
        case "metadata":
            return validation.check_metadata(value)
    if len(value) > MAX_ITEM:
        raise errors.TooLarge("item", f"must be at most {MAX_ITEM} characters of JSON")
    return value


def _origin_of_role(fields: Mapping[str, Any]) -> Origin:
    return Origin(channel=Channel.TURN, trust=trust_of_role(fields["role"], Trust.OUTSIDE))


def stored_trust(row: Mapping[str, Any]) -> Trust:
    """Return the trust of a row of `turn`; what was stored without one has that of its role."""
    trust: str | None = row["origin_trust"]
    return trust_of_role(Role(row["role"]), Trust.OUTSIDE) if trust is None else Trust(trust)


class Turn(BaseModel):
    """A turn as stored in Postgres and in the conversation window."""

    model_config = ConfigDict(frozen=True)

    session_id: str
    seq: int
    role: Role
    speaker: str | None
    content: str
    created_at: datetime
    metadata: dict[str, str]
    # Windows that were cached by processes of an earlier version have none.
    origin: Origin = Field(default_factory=_origin_of_role)
    recalled_lines: list[RecalledLine] = Field(default_factory=list, exclude=True)
    # The version of the turn and of its point in the index.
    version: int = Field(default=0, exclude=True)
    edited_at: datetime | None = Field(default=None, exclude=True)
    # The turn as a provider sent it, as JSON text.
    item: str | None = Field(default=None, exclude=True)

    @classmethod
    def from_row(cls, row: RowMapping) -> "Turn":
        """Build a turn from a row of `turn`."""
        fields: dict[str, Any] = {**row}
        fields["origin"] = Origin.from_row(fields | {"origin_trust": stored_trust(fields)})
        return cls.model_validate(fields)

    @classmethod
    def unpack(cls, packed: Mapping[str, Any]) -> "Turn":
        """Return the turn that `pack` has packed."""
        return cls.model_validate(packed)

    def pack(self) -> dict[str, Any]:
        """Return all fields as JSON, with the item as text, so that it is stored without loss."""
        edited_at = self.edited_at and self.edited_at.isoformat()
        recalled_lines = [line.to_json() for line in self.recalled_lines]
        hidden: dict[str, Any] = {"version": self.version, "edited_at": edited_at, "item": self.item}
        hidden |= {"origin": self.origin.model_dump(mode="json") | {"key_id": self.origin.key_id}}
        return self.model_dump(mode="json") | hidden | {"recalled_lines": recalled_lines}

    def to_json(self) -> dict[str, Any]:
        """Return the turn as the API returns it, for orjson, which writes the item as it was stored."""
        edited_at = self.edited_at and self.edited_at.isoformat().replace("+00:00", "Z")
        item = None if self.item is None else orjson.Fragment(self.item)
        return self.model_dump(mode="json") | {"version": self.version, "edited_at": edited_at, "item": item}

    @property
    def record_id(self) -> str:
        """The record id of this turn in the index."""
        return record_id_of(self.session_id, self.seq)

    def changes_to(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return those of the new values of fields that differ from the present ones.

        Raises errors.Invalid for a value that breaks a rule, or is null where it may not be.
        """
        for name, value in fields.items():
            if value is None and name not in _NULLABLE:
                raise errors.Invalid(name, "must not be null")
        values = {name: _validated(name, value) for name, value in fields.items()}
        return {name: value for name, value in values.items() if value != getattr(self, name)}


def is_read_by_models(changes: Mapping[str, Any]) -> bool:
    """Tell whether a change of these fields changes what something may have been derived from."""
    return not _READ_BY_MODELS.isdisjoint(changes)


def searchable_text_of(speaker: str | None, content: str) -> str:
    """Return the text by which the database finds a turn."""
    return f"{speaker}\n{content}" if speaker else content


def record_id_of(session_id: str, seq: int) -> str:
    """Return the record id of a turn. Session ids contain no '#', so the record id can be split again."""
    return f"{session_id}#{seq}"


def log_id_of(session_id: str) -> str:
    """Return the id that stands for all turns that a session ever had."""
    return f"{session_id}#"


def turn_key_of(record_id: str) -> tuple[str, int]:
    """Return the (session_id, seq) of a turn's record id."""
    session_id, _, seq = record_id.rpartition("#")
    return session_id, int(seq)
