"""The JSON of search results."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from services.gateway.api_model import ApiModel
from services.gateway.responses import JsonResponse
from shared.conversation.observations.observation import Observation
from shared.foundation.origin import Origin
from shared.foundation.roles import Role
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.memory_result import MemoryResult, TextOf
from shared.search.ranking.candidate import ScoredCandidate


class MemoryHit(Memory):
    """A memory that a search found. `scores` are the parts of its score, if the search was to explain.

    `scores.latest_above` is the id of an older result that says something else about the same: the memory was
    put above it, with its `score`. `scores.score` is the memory's own. `text_of` tells whose text `content`
    is: the memory's own, or that of the evidence that it was made from, where that matches clearly better.
    """

    text_of: TextOf = "record"
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
    results = [_hit(record.model_dump(mode="json"), scored, explain=explain) for record, scored in hits]
    return _response(results, stages, degraded, next_cursor)


def found_memories_response(
    hits: Iterable[MemoryResult],
    stages: Sequence[str],
    degraded: Sequence[str],
    *,
    explain: bool,
    next_cursor: str | None = None,
) -> JsonResponse:
    """Return memories as `search_response` does, each with the text that is shown for it."""
    results = [
        _hit(hit.shown.model_dump(mode="json"), hit.scored, explain=explain) | {"text_of": hit.text_of}
        for hit in hits
    ]
    return _response(results, stages, degraded, next_cursor)


def _hit(record: dict[str, Any], scored: ScoredCandidate, *, explain: bool) -> dict[str, Any]:
    return record | {"score": scored.score} | ({"scores": scored.scores} if explain else {})


def _response(
    results: Sequence[dict[str, Any]],
    stages: Sequence[str],
    degraded: Sequence[str],
    next_cursor: str | None,
) -> JsonResponse:
    content = {"results": results, "stages": stages, "degraded": degraded, "next_cursor": next_cursor}
    return JsonResponse(content)
