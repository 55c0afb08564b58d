"""Observations of sessions: report them, list them, find them across sessions."""

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field

from services.gateway import responses
from services.gateway.api_model import Body, Count, Flag, example
from services.gateway.dependencies import Cursor, Limit, Once, Opened, Reader, Writer
from services.gateway.paths import SessionId
from services.gateway.responses import Json
from services.gateway.routes.memory_models import FoundBody
from shared.conversation.observations import add
from shared.conversation.observations import queries as observation_queries
from shared.conversation.observations import search as observation_search
from shared.conversation.observations.observation import Observation, ObservationDraft, ObservationKind
from shared.conversation.observations.search import ObservationCriteria
from shared.conversation.sessions.open import find

router = APIRouter(prefix="/v1", tags=["observations"])


class ObservationBody(Body):
    """Something observed in a session."""

    model_config = example(
        {
            "kind": "fact",
            "content": "Ada flies from Hamburg.",
            "data": {"home_airport": "HAM"},
            "tags": ["travel"],
        }
    )

    kind: ObservationKind
    content: str
    data: dict[str, Any] | None = None
    tags: list[str] = []
    metadata: dict[str, str] = {}
    observed_at: datetime | None = None

    def draft(self) -> ObservationDraft:
        """Return what is to be kept, checked."""
        return ObservationDraft(**self.model_dump(exclude={"tags"}), tags=tuple(self.tags)).checked()


class ObservationSearchBody(Body):
    """A search over observations."""

    model_config = example({"query": "where does Ada fly from?", "kind": "fact"})

    query: Annotated[str, Field(min_length=1, max_length=16_000)]
    kind: ObservationKind | None = None
    agent_id: str | None = None
    user_id: str | None = None
    session_id: str | None = None
    limit: Annotated[Count, Field(ge=1, le=100)] = 10
    explain: Flag = False


@router.post(
    "/sessions/{session_id:session}/observations", status_code=HTTPStatus.CREATED, response_model=Observation
)
async def add_observation(
    opened: Opened, caller: Writer, session_id: SessionId, body: ObservationBody, once: Once
) -> Json:
    """Attach an observation to a session."""
    observed = await add.observe(opened, caller, session_id, body.draft(), once)
    return Json(observed, HTTPStatus.CREATED)


@router.get("/sessions/{session_id:session}/observations")
async def list_observations(
    opened: Opened,
    caller: Reader,
    session_id: SessionId,
    kind: ObservationKind | None = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Json:
    """List the observations of a session, the newest first."""
    after, idle = responses.place_of(cursor), opened.settings.window_idle
    async with opened.postgres.tenant(caller.tenant) as connection:
        session = await find(connection, caller, session_id, idle)
        rows = await observation_queries.page(connection, session, limit + 1, after, kind)
    return responses.page(
        rows, limit, lambda row: row.model_dump(mode="json"), lambda row: (row.created_at, row.id)
    )


@router.post("/observations/search", response_model=FoundBody)
async def search_observations(opened: Opened, caller: Reader, body: ObservationSearchBody) -> Json:
    """Find observations by what they say, across sessions."""
    criteria = ObservationCriteria(body.kind, body.session_id)
    scope = caller.scope(body.agent_id, body.user_id)
    found = await observation_search.search(opened, scope, body.query, criteria, body.limit)
    results: list[dict[str, Any]] = [
        observed.model_dump(mode="json")
        | {"score": scored.score}
        | ({"scores": scored.scores} if body.explain else {})
        for observed, scored in found.results
    ]
    return Json({"results": results, "stages": found.stages, "degraded": found.degraded})
