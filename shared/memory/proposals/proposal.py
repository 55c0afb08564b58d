"""Proposals of memories: as a pass makes them, and as they are stored and returned by the API."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from shared.foundation.scope import Scope
from shared.memory.longterm.memory import MemoryDraft

MAX_REASON = 500


class ProposalKind(StrEnum):
    """What a proposal would do. The list may grow."""

    FACT = "fact"
    REWRITING = "rewriting"
    MERGE = "merge"


class ProposalState(StrEnum):
    """What became of a proposal."""

    HELD = "held"
    APPROVED = "approved"
    REFUSED = "refused"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class ProposalDraft:
    """What a pass may not store by itself.

    `row` is the row of the memory that it would become, as `new_rows` builds it. `closes` is the id of a
    memory that it would end. `replaces` are those that it would archive: the note of a rewriting, the
    sources of a merge. Evidence is turns, as (session id, seq), and memories; there is at least one of them.
    `edited_at` are the times of the last edit of memories, as they were read: what was edited since is not
    what the draft was made from.
    """

    kind: ProposalKind
    row: Mapping[str, Any]
    evidence_turns: tuple[tuple[str, int], ...] = ()
    evidence_memory_ids: tuple[str, ...] = ()
    closes: str | None = None
    replaces: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    edited_at: Mapping[str, datetime | None] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text of the memory that it would become."""
        return str(self.row["content"])

    @property
    def memory_ids(self) -> set[str]:
        """The memories that it rests on, closes or replaces."""
        return {*self.evidence_memory_ids, *self.replaces, *([self.closes] if self.closes else [])}


class TurnEvidence(BaseModel):
    """A turn that a proposal rests on."""

    model_config = ConfigDict(frozen=True)

    session_id: str
    seq: int


class MemoryEvidence(BaseModel):
    """A memory that a proposal rests on."""

    model_config = ConfigDict(frozen=True)

    memory_id: str


class Proposal(BaseModel):
    """A proposal as it is stored in Postgres."""

    model_config = ConfigDict(frozen=True)

    id: str
    kind: str
    text: str
    category: str | None
    tags: list[str]
    importance: float
    occurred_at: datetime | None
    closes: str | None
    evidence: list[TurnEvidence | MemoryEvidence]
    signs: list[str]
    state: ProposalState
    agent_id: str
    user_id: str | None
    created_at: datetime
    expires_at: datetime
    decided_by: str | None
    decided_at: datetime | None
    reason: str | None
    memory_id: str | None
    tenant: str = Field(exclude=True)
    row: dict[str, Any] = Field(exclude=True)
    replaces: list[str] = Field(exclude=True)
    edited_at: dict[str, datetime | None] = Field(exclude=True)
    evidence_count: int = Field(exclude=True)
    evidence_user_ids: list[str] = Field(exclude=True)

    @classmethod
    def from_row(cls, row: RowMapping) -> "Proposal":
        """Read a proposal from a row of the table `proposal` with its evidence as JSON."""
        shown = {name: row["row"][name] for name in ("category", "tags", "importance", "occurred_at")}
        return cls.model_validate({**row, **shown, "closes": row["closes"] or None})

    @property
    def scope(self) -> Scope:
        """The scope that the memory would belong to."""
        return Scope(self.tenant, self.agent_id, self.user_id)

    @property
    def session_ids(self) -> set[str]:
        """The sessions of the turns that are left of its evidence."""
        return {item.session_id for item in self.evidence if isinstance(item, TurnEvidence)}

    def draft(self, edited: str | None) -> MemoryDraft:
        """Return the memory that it would become, with another text if it was edited."""
        fields = {name: self.row[name] for name in MemoryDraft.model_fields if name in self.row}
        return MemoryDraft.model_validate({**fields, "content": edited or self.text})

    def to_json(self) -> dict[str, Any]:
        """Return the proposal as the API does."""
        return self.model_dump(mode="json")
