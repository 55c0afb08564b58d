"""Observations of sessions: add them, list them, and search them across sessions."""

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from pydantic import Field

from services.gateway import responses
from services.gateway.api_model import ApiModel, Count, Flag, RequestedTrust, example
from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import (
    Cursor,
    IdempotencyKeyDep,
    Limit,
    ReadCaller,
    ResourcesDep,
    WriteCaller,
)
from services.gateway.paths import SessionId
from services.gateway.response_models import Page
from services.gateway.responses import JsonResponse
from services.gateway.search_response import FoundObservations, search_response
from services.gateway.waiting import WAITS
from shared.conversation.observations import add, read
from shared.conversation.observations import search as observation_search
from shared.conversation.observations.observation import Observation, ObservationDraft, ObservationKind
from shared.conversation.observations.search import ObservationFilters
from shared.foundation import errors
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area

router = authenticated_router(prefix="/v1", tags=["observations"])


class ObservationBody(ApiModel):
    """An observation to attach to a session."""

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
    trust: RequestedTrust = None

    def draft(self) -> ObservationDraft:
        """Return the observation to save. Raise errors.Invalid if it breaks a rule."""
        if self.kind is ObservationKind.REPORT:
            raise errors.Invalid("kind", "a report is saved with POST /v1/sessions/{id}/report")
        return ObservationDraft(**self.model_dump(exclude={"tags"}), tags=tuple(self.tags)).validated()


class ObservationSearchBody(ApiModel):
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
    "/sessions/{session_id:session}/observations",
    status_code=HTTPStatus.CREATED,
    response_model=Observation,
    dependencies=[WAITS],
)
async def add_observation(
    resources: ResourcesDep,
    caller: WriteCaller,
    session_id: SessionId,
    body: ObservationBody,
    idempotency_key: IdempotencyKeyDep,
) -> JsonResponse:
    """Attach an observation to a session."""
    observation = await add.add_observation(resources, caller, session_id, body.draft(), idempotency_key)
    return JsonResponse(observation, HTTPStatus.CREATED)


@router.get("/sessions/{session_id:session}/observations", response_model=Page[Observation])
async def list_observations(
    resources: ResourcesDep,
    caller: ReadCaller,
    session_id: SessionId,
    kind: ObservationKind | None = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> JsonResponse:
    """List the observations of a session, the newest first."""
    after = responses.decode_cursor(cursor)
    rows = await read.list_observations(resources, caller, session_id, kind, limit + 1, after)
    return responses.page_response(
        rows, limit, lambda row: row.model_dump(mode="json"), lambda row: (row.created_at, row.id)
    )


@router.post("/observations/search", response_model=FoundObservations)
async def search_observations(
    resources: ResourcesDep, caller: ReadCaller, body: ObservationSearchBody
) -> JsonResponse:
    """Search the contents of observations across sessions."""
    filters = ObservationFilters(body.kind, body.session_id)
    scope = rights.scope(caller, Area.SESSIONS, Action.READ, body.agent_id, body.user_id)
    hits = await observation_search.search(resources, scope, body.query, filters, body.limit)
    return search_response(hits.results, hits.stages, hits.degraded, explain=body.explain)
