"""A long-term memory: as a caller drafts it, and as it is stored and returned."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, computed_field
from sqlalchemy import RowMapping

from shared.foundation import validation
from shared.foundation.scope import Scope
from shared.foundation.stages import MemoryState
from shared.memory.longterm import decay

MAX_CONTENT = 16_000
RECALLED_LINE_FIELDS = frozenset({"content", "category"})
"""The fields that the line of a recalled memory shows. A change of one is a new content version."""


class Source(BaseModel):
    """The turn or session that a memory comes from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    session_id: str
    seq: int | None = Field(default=None, ge=0, le=2**31 - 1)
    speaker: str | None = None
    role: str | None = None


class MemoryDraft(BaseModel):
    """A memory that a caller wants to save. `validated` checks it against the rules."""

    model_config = ConfigDict(frozen=True)

    content: str
    category: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, str] = Field(default_factory=dict)
    importance: float = 0.5
    occurred_at: datetime | None = None
    source: Source | None = None
    enrich: bool = True

    def validated(self) -> "MemoryDraft":
        """Return the draft as it will be stored. Raises errors.Invalid, naming the field and the rule."""
        return self.model_copy(
            update={
                "content": validation.check_text(self.content, "content", MAX_CONTENT),
                "category": None if self.category is None else validation.check_category(self.category),
                "tags": validation.check_tags(self.tags),
                "metadata": validation.check_metadata(self.metadata),
                "occurred_at": self.occurred_at and validation.check_time(self.occurred_at, "occurred_at"),
                "source": None if self.source is None else check_source(self.source, "source"),
            }
        )


def check_source(source: Source, field: str) -> Source:
    """Return the source. Raises errors.Invalid, naming the field below `field` and the rule."""
    validation.check_identifier(source.session_id, f"{field}.session_id")
    for name in ("speaker", "role"):
        value = getattr(source, name)
        if value is not None:
            validation.check_text(value, f"{field}.{name}", 128)
    return source


class Memory(BaseModel):
    """A long-term memory as it is stored in Postgres."""

    model_config = ConfigDict(frozen=True)

    id: str
    content: str
    category: str | None
    tags: list[str]
    metadata: dict[str, str]
    importance: float
    state: MemoryState
    failure_reason: str | None = None
    occurred_at: datetime | None
    source: Source | None
    sources: list[Source]
    created_at: datetime
    updated_at: datetime | None
    last_seen_at: datetime
    reinforcement_count: int
    agent_id: str
    user_id: str | None
    superseded_by: list[str]
    derived_from: list[str]
    archived_at: datetime | None
    archive_reason: str | None
    tenant: str = Field(exclude=True)
    version: int = Field(exclude=True)
    content_version: int = Field(exclude=True)

    @classmethod
    def from_row(cls, row: RowMapping) -> "Memory":
        """Read a memory from a row of the table `memory`."""
        sources = row["sources"]
        fields: dict[str, Any] = {**row, "source": sources[0] if sources else None}
        return cls.model_validate(fields)

    @property
    def scope(self) -> Scope:
        """The scope that the memory belongs to."""
        return Scope(self.tenant, self.agent_id, self.user_id)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def effective_importance(self) -> float:
        """The decayed importance, which ranking uses."""
        return decay.effective_importance(self.importance, self.last_seen_at)

    @property
    def at(self) -> datetime:
        """The time that the memory is about, or else when it was created."""
        return self.occurred_at or self.created_at
