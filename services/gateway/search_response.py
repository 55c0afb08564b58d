"""The JSON of search results."""

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel

from services.gateway.api_model import ApiModel
from services.gateway.responses import JsonResponse
from shared.search.ranking.candidate import ScoredCandidate


class SearchResponse(ApiModel):
    """Search results."""

    results: list[dict[str, Any]]
    stages: list[str]
    degraded: list[str]
    next_cursor: str | None = None


def search_response(
    hits: Iterable[tuple[BaseModel, ScoredCandidate]],
    stages: Sequence[str],
    degraded: Sequence[str],
    *,
    explain: bool,
) -> JsonResponse:
    """Return records with their scores, best first. With `explain`, add the parts of each score."""
    results = [
        record.model_dump(mode="json")
        | {"score": scored.score}
        | ({"scores": scored.scores} if explain else {})
        for record, scored in hits
    ]
    return JsonResponse({"results": results, "stages": stages, "degraded": degraded})
