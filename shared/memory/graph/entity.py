"""Entities as they are written, stored and returned by the API."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from shared.foundation import errors, validation
from shared.foundation.scope import Scope
from shared.memory.graph import names

MAX_ALIASES = 64
MERGED = "merged"
"""The reason of what a dream has merged into another entity: that one has its names."""


class EntityType(StrEnum):
    """What an entity is."""

    PERSON = "Person"
    PROJECT = "Project"
    TOPIC = "Topic"
    TOOL = "Tool"
    EVENT = "Event"
    DOCUMENT = "Document"


def parse_type(text: str | None) -> EntityType:
    """Return the type that a model or a caller wrote, in any case; what is unknown is a topic."""
    by_name = {str(member).casefold(): member for member in EntityType}
    return by_name.get((text or "").casefold(), EntityType.TOPIC)


class EntityDraft(BaseModel):
    """An entity to be saved. Without a type, it keeps the one that it has, and is a topic if it is new."""

    model_config = ConfigDict(frozen=True)

    name: str
    type: EntityType | None = None
    aliases: tuple[str, ...] = ()
    metadata: dict[str, str] = Field(default_factory=dict)

    def validated(self) -> "EntityDraft":
        """Return the draft as it will be stored; raise errors.Invalid that names the field and the rule."""
        if len(self.aliases) > MAX_ALIASES:
            raise errors.TooLarge("aliases", f"must be at most {MAX_ALIASES} names")
        aliases = [
            names.check_name(alias, f"aliases.{position}") for position, alias in enumerate(self.aliases)
        ]
        name = names.check_name(self.name, "name")
        metadata = validation.check_metadata(self.metadata)
        update = {"name": name, "aliases": join_aliases(name, aliases), "metadata": metadata}
        return self.model_copy(update=update)


def join_aliases(name: str, aliases: Iterable[str]) -> tuple[str, ...]:
    """Return aliases in their order without those that are the same as the name or as one before."""
    by_folded: dict[str, str] = {}
    for alias in aliases:
        by_folded.setdefault(names.fold(alias), alias)
    by_folded.pop(names.fold(name), None)
    return tuple(by_folded.values())


class Entity(BaseModel):
    """An entity as stored in Postgres. One that has expired is in no answer but on request."""

    model_config = ConfigDict(frozen=True)

    id: str
    name: str
    type: EntityType
    aliases: list[str]
    metadata: dict[str, str]
    agent_id: str
    user_id: str | None
    created_at: datetime
    updated_at: datetime | None
    last_referenced_at: datetime | None
    expired_at: datetime | None
    reason: str | None
    is_derived: bool = Field(exclude=True)
    is_kept: bool = Field(default=False, exclude=True)
    tenant: str = Field(exclude=True)

    @classmethod
    def from_row(cls, row: RowMapping) -> "Entity":
        """Build an entity from a row of `graph_entity`."""
        return cls.model_validate({**row})

    @property
    def scope(self) -> Scope:
        """The scope that the entity belongs to."""
        return Scope(self.tenant, self.agent_id, self.user_id)

    @property
    def names(self) -> list[str]:
        """Its name and its aliases."""
        return [self.name, *self.aliases]

    def is_seen_by(self, scope: Scope) -> bool:
        """Return whether a scope sees it: its own, or one that is common to the agent."""
        return self.agent_id == scope.agent_id and self.user_id in (None, scope.user_id)

    @property
    def is_merged(self) -> bool:
        """Whether a dream has merged it into another entity."""
        return self.expired_at is not None and self.reason == MERGED

    def to_json(self) -> dict[str, Any]:
        """Return it as the API does."""
        return self.model_dump(mode="json")
