"""Responses of the routes on turns, on the state of sessions, on scratch stores and on agents."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict

from services.gateway.api_model import ApiModel
from services.gateway.response_models import Problem
from services.gateway.state_collections import CollectionInfoResponse
from services.gateway.turn_models import AppendedTurn
from shared.platform.agents.agent import AgentText


class AppendedTurns(ApiModel):
    """For each turn, in order, its number and version, or the problem with it."""

    results: list[AppendedTurn | Problem]


class AgentTexts(ApiModel):
    """The texts of an agent, in their order."""

    results: list[AgentText]


class AgentFileInfo(ApiModel):
    """A file of an agent, without its content."""

    name: str
    content_type: str
    size_bytes: int
    modified: datetime


class SessionFileInfo(ApiModel):
    """A file of a session, without its content."""

    name: str
    size_bytes: int
    modified: datetime


class SessionFile(BaseModel):
    """A file of a session in JSON: its keys, its totals or a collection."""

    model_config = ConfigDict(extra="allow")


class SimilarRow(ApiModel):
    """A row of a vec, with its position and label, and its cosine to the vector of the search."""

    place: int
    label: str | None
    score: float


class SimilarRows(ApiModel):
    """The most similar rows, best first."""

    results: list[SimilarRow]


class TranscriptEntryResponse(ApiModel):
    """An entry of a transcript."""

    role: str
    content: str
    metadata: dict[str, str]
    timestamp: datetime


class WorkingMemoryText(ApiModel):
    """The text under the key `working_memory` of a session."""

    value: str


class ScratchStore(ApiModel):
    """What a scratch store holds, without the values, and when it expires."""

    name: str
    keys: list[str]
    collections: list[CollectionInfoResponse]
    expires_at: datetime | None


class DeletedLabel(ApiModel):
    """Whether there was a collection to delete."""

    label: str
    deleted: bool
