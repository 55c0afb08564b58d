"""Proposals about skills: as a pass makes them, and as they are stored and returned by the API."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from shared.foundation.scope import Scope
from shared.foundation.stages import DreamPass

MAX_REASON = 500


class ProposalState(StrEnum):
    """What became of a proposal."""

    OPEN = "open"
    PUBLISHED = "published"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"  # its run was undone, or a later run proposes the skill anew


@dataclass(frozen=True, slots=True)
class ProposalDraft:
    """What a pass proposes: a skill, and the names of those that it stands for.

    `based_on` are the versions of the skills that it was made from, by id; `session_ids` the sessions.
    """

    name: str
    summary: str
    content: str
    replaces: tuple[str, ...]
    based_on: Mapping[str, int]
    session_ids: tuple[str, ...]


class SkillProposal(BaseModel):
    """A proposal as stored in Postgres."""

    model_config = ConfigDict(frozen=True)

    id: str
    run_id: str
    pass_name: DreamPass = Field(alias="pass", serialization_alias="pass")
    name: str
    summary: str
    content: str
    replaces: list[str]
    session_ids: list[str]
    agent_id: str
    user_id: str | None
    state: ProposalState
    reason: str | None
    decided_by: str | None
    decided_at: datetime | None
    created_at: datetime
    tenant: str = Field(exclude=True)
    based_on: dict[str, int] = Field(exclude=True)
    published_version: int | None = Field(exclude=True)
    before: list[dict[str, Any]] = Field(exclude=True)

    @classmethod
    def from_row(cls, row: RowMapping) -> "SkillProposal":
        """Read a proposal from a row of `skill_proposal`."""
        return cls.model_validate({**row})

    @property
    def scope(self) -> Scope:
        """The scope whose skills are meant."""
        return Scope(self.tenant, self.agent_id, self.user_id)

    def changes(self) -> list[dict[str, Any]]:
        """Return what became of the proposal and, once it is published, which skills it deleted."""
        earlier = [skill["name"] for skill in self.before]
        published = "replaced" if self.name in earlier else "created"
        actions = {ProposalState.OPEN: "proposed", ProposalState.PUBLISHED: published}
        known = {"record": "skill", "pass": self.pass_name, "proposal_id": self.id, "reason": self.reason}
        action = actions.get(self.state, self.state.value)
        main = {"entry_id": self.name, "action": action, "version": self.published_version}
        deleted = [
            {"entry_id": name, "action": "deleted", "successors": [self.name]}
            for name in earlier
            if name != self.name
        ]
        return [known | change for change in (*deleted, main)]

    def to_json(self) -> dict[str, Any]:
        """Return the proposal as the API does."""
        return self.model_dump(mode="json", by_alias=True)
