"""Search over what was said, across sessions."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field

from services.gateway.api_model import ApiModel, Count, Flag, example
from services.gateway.dependencies import ReadCaller, ResourcesDep
from services.gateway.responses import JsonResponse
from services.gateway.routes.memory_models import SearchResponse
from shared.conversation.turns import search as turn_search
from shared.conversation.turns.search import TurnFilters

router = APIRouter(prefix="/v1/turns", tags=["sessions"])


class TurnSearchBody(ApiModel):
    """A search over turns."""

    model_config = example({"query": "what did we say about the trip to Paris?"})

    query: Annotated[str, Field(min_length=1, max_length=16_000)]
    agent_id: str | None = None
    user_id: str | None = None
    session_id: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    limit: Annotated[Count, Field(ge=1, le=100)] = 10
    explain: Flag = False


@router.post("/search", response_model=SearchResponse)
async def search_turns(resources: ResourcesDep, caller: ReadCaller, body: TurnSearchBody) -> JsonResponse:
    """Find turns by what was said, who said it and when."""
    criteria = TurnFilters(body.session_id, None, body.created_after, body.created_before)
    scope = caller.scope(body.agent_id, body.user_id)
    found = await turn_search.search(resources, scope, body.query, criteria, body.limit)
    results: list[dict[str, Any]] = [
        turn.model_dump(mode="json")
        | {"score": scored.score}
        | ({"scores": scored.scores} if body.explain else {})
        for turn, scored in found.results
    ]
    return JsonResponse({"results": results, "stages": found.stages, "degraded": found.degraded})
