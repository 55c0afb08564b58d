"""Responses of the routes on dreams and directives."""

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, Field

from services.gateway.api_model import ApiModel
from shared.dreams.runs.dream_run import RunState
from shared.memory.longterm.memory import Source


class DirectiveSummary(ApiModel):
    """A directive that applies, without its text."""

    name: str
    version: str
    origin: str
    digest: str


class RunSummary(ApiModel):
    """A dream run without its passes."""

    id: str
    agent_id: str
    user_id: str | None
    state: RunState
    dry_run: bool
    actor: str
    created_at: datetime
    finished_at: datetime | None
    undone_at: datetime | None


class RunChange(ApiModel):
    """What a run changed of one memory, entity or triple (these two have no versions), or skill.

    A skill is named by `entry_id`. It is `proposed` until its proposal is decided; then it is `created`,
    `replaced`, `deleted` in favour of its successor, `refused`, or `withdrawn` by an undo.
    """

    model_config = ConfigDict(populate_by_name=True)

    record: Literal["memory", "entity", "triple", "skill"]
    pass_name: str = Field(alias="pass")
    action: str
    entry_id: str
    version: int | None = None
    reason: str | None
    previous_state: str | None = None
    previous_valid_until: datetime | None = None
    successors: list[str] = []
    reinforcement_count: int | None = None
    added_count: int | None = None
    proposal_id: str | None = None
    # Those that a reinforcement has added to the memory; null if there are none, or the memory was deleted.
    added_sources: list[Source] | None = None


class KeptMemory(ApiModel):
    """A memory that an undo left as it is, and why."""

    entry_id: str
    reason: str


class KeptSkill(ApiModel):
    """A skill that an undo left as it is, and why."""

    name: str
    reason: str


class UndoneRun(ApiModel):
    """What an undo restored, reopened, removed and counted down, and what it kept.

    The ids are those of memories, entities and triples. `unreinforced` lost only what the run had added.
    `skills` are the names of those of which a proposal was taken back.
    """

    id: str
    restored: list[str]
    reopened: list[str]
    removed: list[str]
    unreinforced: list[str]
    kept: list[KeptMemory]
    skills: list[str]
    kept_skills: list[KeptSkill]
