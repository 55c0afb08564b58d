"""Preferences as they are sent, stored and returned by the API."""

from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

import orjson
from pydantic import BaseModel, ConfigDict, Field, computed_field
from sqlalchemy import RowMapping

from shared.foundation import errors, validation
from shared.foundation.origin import UNKNOWN, Origin
from shared.foundation.scope import Scope
from shared.memory.longterm.fingerprint import normalize

MAX_NAME = 128
"""Characters of a key and of the name of a slot."""
MAX_DESCRIPTION = 4000
MAX_TEMPLATE = 16_000
MAX_VALUE_BYTES = 32_768
MAX_RELATED = 64
JsonObject = dict[str, Any]


class PreferenceBasis(StrEnum):
    """On what basis a preference stands; the table calls it `origin`."""

    EXPLICIT = "explicit"  # a caller wrote it
    PROMOTION = "promotion"  # a snippet of a session's scratchpad was promoted
    DREAM = "dream"  # a dream inferred it from conversations
    DOMAIN = "domain"  # the domain file has it, and nothing is stored under its key


class PreferenceState(StrEnum):
    """Whether a preference applies."""

    ACTIVE = "active"
    AWAITING_PERMISSION = "awaiting_permission"
    SUSPENDED = "suspended"  # the memory that it was learnt with is archived, or valid no longer


class Condition(BaseModel):
    """When a preference applies: in a flow, in a situation like the description, or both together."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    flow: str | None = None
    description: str | None = None

    def validated(self) -> "Condition":
        """Return the condition. Raise errors.Invalid for one that names neither, or breaks a rule."""
        if self.flow is None and self.description is None:
            raise errors.Invalid("condition", "must have a flow or a description")
        if self.flow is not None:
            validation.check_technical_id(self.flow, "condition.flow")
        if self.description is not None:
            validation.check_text(self.description, "condition.description", MAX_DESCRIPTION)
        return self


class EffectPart(NamedTuple):
    """What one effect changes: a slot, or the template of the response (None), and what it becomes."""

    slot: str | None
    content: Any


class Effect(BaseModel):
    """What a preference does: it gives a slot a value, or changes the template of the response, or both."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    slot: str | None = None
    value: Any = None
    template: str | None = None

    @property
    def parts(self) -> list[EffectPart]:
        """What the effect changes, one by one."""
        of_slot = [] if self.slot is None else [EffectPart(self.slot, self.value)]
        return of_slot if self.template is None else [*of_slot, EffectPart(None, self.template)]

    def validated(self) -> "Effect":
        """Return the effect. Raise errors.Invalid for one that changes nothing, or breaks a rule."""
        if self.slot is None and self.template is None:
            raise errors.Invalid("effect", "must have a slot with its value, or a template")
        if (self.slot is None) != (self.value is None):
            raise errors.Invalid("effect", "must have a slot and a value together")
        if self.slot is not None:
            validation.check_single_line(self.slot, "effect.slot", MAX_NAME)
            validation.check_json(self.value, "effect.value", MAX_VALUE_BYTES)
        if self.template is not None:
            validation.check_text(self.template, "effect.template", MAX_TEMPLATE)
        return self


class PreferenceDraft(BaseModel):
    """A rule that is to be stored under a key. `related` are keys of preferences that go along with it."""

    model_config = ConfigDict(frozen=True)

    condition: Condition
    effect: Effect
    related: tuple[str, ...] = ()

    def validated(self) -> "PreferenceDraft":
        """Return the draft as it will be stored; raise errors.Invalid that names the field and the rule."""
        related = tuple(dict.fromkeys(self.related))
        if len(related) > MAX_RELATED:
            raise errors.TooLarge("related", f"must be at most {MAX_RELATED} keys")
        for position, key in enumerate(related):
            check_key(key, f"related.{position}")
        self.condition.validated()
        self.effect.validated()
        return self.model_copy(update={"related": related})

    def columns(self) -> JsonObject:
        """Return the draft as columns of `preference`."""
        return {
            **self.condition.model_dump(),
            **self.effect.model_dump(),
            "related": list(self.related),
        }


class Preference(BaseModel):
    """A preference as stored in Postgres. The version is its ETag; one of the domain file has version 0.

    `memory_id` is the memory that it was learnt with: deleting that deletes the preference, and archiving or
    ending it suspends the preference.
    """

    model_config = ConfigDict(frozen=True)

    key: str
    condition: Condition
    effect: Effect
    related: list[str]
    agent_id: str
    user_id: str | None
    basis: PreferenceBasis
    origin: Origin = UNKNOWN
    requires_user_permission: bool
    permission_granted_at: datetime | None
    memory_id: str | None
    version: int
    created_at: datetime | None
    updated_at: datetime | None
    id: str = Field(exclude=True)
    tenant: str = Field(exclude=True)
    is_suspended: bool = Field(default=False, exclude=True)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def state(self) -> PreferenceState:
        """Whether it applies: one that needs the user's permission does once that is granted."""
        if self.is_suspended:
            return PreferenceState.SUSPENDED
        if self.requires_user_permission and self.permission_granted_at is None:
            return PreferenceState.AWAITING_PERMISSION
        return PreferenceState.ACTIVE

    @classmethod
    def from_row(cls, row: RowMapping) -> "Preference":
        """Read a preference from a row of `preference`."""
        condition = {name: row[name] for name in Condition.model_fields}
        effect = {name: row[name] for name in Effect.model_fields}
        fields: dict[str, Any] = {**row, "condition": condition, "effect": effect}
        return cls.model_validate(fields | {"basis": row["origin"], "origin": Origin.from_row(fields)})

    @property
    def draft(self) -> PreferenceDraft:
        """The rule that it is."""
        return PreferenceDraft(condition=self.condition, effect=self.effect, related=tuple(self.related))

    @property
    def is_learnt(self) -> bool:
        """Whether it is a learnt wish. It has no condition: its description is what it says, for search."""
        is_from_conversations = self.basis in {PreferenceBasis.PROMOTION, PreferenceBasis.DREAM}
        return is_from_conversations and self.condition.description == self.effect.value

    @property
    def scope(self) -> Scope:
        """The scope that the preference belongs to."""
        return Scope(self.tenant, self.agent_id, self.user_id)

    def to_json(self) -> JsonObject:
        """Return the preference as the API does: condition and effect have what they name alone."""
        fields = self.model_dump(mode="json", exclude={"condition", "effect"})
        not_a_condition = {"description"} if self.is_learnt else set()
        condition = self.condition.model_dump(exclude_none=True, exclude=not_a_condition)
        return {"key": self.key, "condition": condition, "effect": effect_json(self.effect), **fields}


def tombstone_text(key: str, draft: PreferenceDraft) -> str:
    """Return the text under which a deleted rule is remembered: what it says under its key, in any flow.

    Every text of it is folded as those of memories are, so that case and white space hide nothing.
    """
    effect, said = draft.effect, (draft.condition.description, draft.effect.template)
    parts = _folded(["preference", key, effect.slot, effect.value, *said])
    return orjson.dumps(parts, option=orjson.OPT_SORT_KEYS).decode()


def _folded(value: Any) -> Any:
    if isinstance(value, str):
        return normalize(value)
    if isinstance(value, list):
        return [_folded(item) for item in value]
    if isinstance(value, dict):
        return {normalize(name): _folded(item) for name, item in value.items()}
    return value


def effect_json(effect: Effect) -> JsonObject:
    """Return an effect with what it names alone."""
    fields = {"slot": effect.slot, "value": effect.value, "template": effect.template}
    return {name: field for name, field in fields.items() if field is not None}


def check_key(key: str, field: str = "key") -> str:
    """Return a key, such as `report/depth`: one line of at most 128 characters, not `.` or `..`."""
    validation.check_path_shape(key, field)
    if key != key.strip() or "." in key.split("/"):
        raise errors.Invalid(field, "must not have spaces around it or a '.' segment")
    return validation.check_single_line(key, field, MAX_NAME)
