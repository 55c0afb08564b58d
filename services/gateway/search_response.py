"""The JSON of search results."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from pydantic import BaseModel

from services.gateway.api_model import ApiModel
from services.gateway.responses import JsonResponse
from shared.conversation.observations.observation import Observation
from shared.foundation.origin import Origin
from shared.foundation.roles import Role
from shared.memory.longterm.memory import Memory
from shared.search.ranking.candidate import ScoredCandidate


class MemoryHit(Memory):
    """A memory that a search found. `scores` are the parts of its score, if the search was to explain.

    `scores.latest_above` is the id of an older result that says something else about the same: the memory was
    put above it, with its `score`. `scores.score` is the memory's own.
    """

    score: float
    scores: dict[str, float | str] = {}


class ObservationHit(Observation):
    """An observation that a search found, like a memory."""

    score: float
    scores: dict[str, float | str] = {}


class TurnHit(ApiModel):
    """A turn that a search found, like a memory. Reading the turn tells its version and its item."""

    session_id: str
    seq: int
    role: Role
    speaker: str | None
    content: str
    created_at: datetime
    metadata: dict[str, str]
    origin: Origin
    score: float
    scores: dict[str, float | str] = {}


class _SearchResponse(ApiModel):
    stages: list[str]
    degraded: list[str]
    next_cursor: str | None = None


class FoundMemories(_SearchResponse):
    """The memories that a search found, best first; what ran, and what was missing."""

    results: list[MemoryHit]


class FoundObservations(_SearchResponse):
    """The observations that a search found, best first; what ran, and what was missing."""

    results: list[ObservationHit]


class FoundTurns(_SearchResponse):
    """The turns that a search found, best first; what ran, and what was missing."""

    results: list[TurnHit]


def search_response(
    hits: Iterable[tuple[BaseModel, ScoredCandidate]],
    stages: Sequence[str],
    degraded: Sequence[str],
    *,
    explain: bool,
    next_cursor: str | None = None,
) -> JsonResponse:
    """Return records with their scores, best first. With `explain`, add the parts of each score."""
    results = [
        record.model_dump(mode="json")
        | {"score": scored.score}
        | ({"scores": scored.scores} if explain else {})
        for record, scored in hits
    ]
    content = {"results": results, "stages": stages, "degraded": degraded, "next_cursor": next_cursor}
    return JsonResponse(content)
