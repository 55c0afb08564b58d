"""Turns: append them, read the conversation window, and search turns across sessions."""

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from services.gateway import errors as gateway_errors
from services.gateway.api_model import ApiModel, BatchApiModel, Count, Flag, example, parse
from services.gateway.dependencies import IdempotencyKeyDep, ReadCaller, ResourcesDep, WriteCaller
from services.gateway.paths import SessionId
from services.gateway.responses import JsonResponse
from services.gateway.search_response import SearchResponse, search_response
from shared.conversation.turns import append, window
from shared.conversation.turns import search as turn_search
from shared.conversation.turns.search import TurnFilters
from shared.conversation.turns.turn import TurnDraft
from shared.foundation import errors
from shared.foundation.roles import Role
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area
from shared.platform.spend.charge import parse_turn_usage

router = APIRouter(prefix="/v1", tags=["sessions"])


class TurnBody(ApiModel):
    """A turn to append."""

    model_config = example({"role": "assistant", "content": "Noted: no flights on Fridays."})

    role: Role
    content: str
    speaker: str | None = None
    created_at: datetime | None = None
    metadata: dict[str, str] = {}
    usage: dict[str, Any] | None = None

    def draft(self) -> TurnDraft:
        """Return the turn to append, with its usage. Raise errors.Invalid if it breaks a rule."""
        draft = TurnDraft(**self.model_dump(exclude={"usage"})).validated()
        return draft.model_copy(update={"usage": parse_turn_usage(self.usage)})


class TurnsBody(BatchApiModel):
    """Turns to append, in order. Each is accepted or refused on its own."""

    model_config = example({"turns": [{"role": "user", "content": "Hello"}]})

    turns: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=1000)]


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


@router.post("/sessions/{session_id:session}/turns/batch", status_code=HTTPStatus.CREATED)
async def append_turns(
    resources: ResourcesDep,
    caller: WriteCaller,
    session_id: SessionId,
    body: TurnsBody,
    idempotency_key: IdempotencyKeyDep,
) -> JsonResponse:
    """Append up to 1000 turns. Each result is the turn's `seq`, or the problem with that turn."""
    drafts: list[TurnDraft] = []
    problems_by_position: dict[int, dict[str, Any]] = {}
    for position, item in enumerate(body.turns):
        try:
            drafts.append(parse(TurnBody, item).draft())
        except errors.LociError as error:
            problems_by_position[position] = gateway_errors.problem_from_error(error)
    results = await append.append(
        resources, caller, session_id, drafts, idempotency_key, problems_by_position
    )
    status = HTTPStatus.CREATED if drafts else HTTPStatus.UNPROCESSABLE_ENTITY
    return JsonResponse({"results": results}, status)


@router.post("/sessions/{session_id:session}/turns", status_code=HTTPStatus.CREATED)
async def append_turn(
    resources: ResourcesDep,
    caller: WriteCaller,
    session_id: SessionId,
    body: TurnBody,
    idempotency_key: IdempotencyKeyDep,
) -> JsonResponse:
    """Append a turn."""
    results = await append.append(resources, caller, session_id, [body.draft()], idempotency_key)
    return JsonResponse(results[0], HTTPStatus.CREATED)


@router.get("/sessions/{session_id:session}/turns")
async def list_turns(
    resources: ResourcesDep,
    caller: ReadCaller,
    session_id: SessionId,
    last: Annotated[int, Query(ge=1, le=100)] = 20,
) -> JsonResponse:
    """Read the conversation window: the last turns, or none if the session has been idle too long."""
    turns = await window.read_window(resources, caller, session_id, last)
    return JsonResponse({"results": [turn.model_dump(mode="json") for turn in turns], "next_cursor": None})


@router.post("/turns/search", response_model=SearchResponse)
async def search_turns(resources: ResourcesDep, caller: ReadCaller, body: TurnSearchBody) -> JsonResponse:
    """Search turns by content, across sessions; filter them by session and time."""
    filters = TurnFilters(body.session_id, None, body.created_after, body.created_before)
    scope = rights.scope(caller, Area.SESSIONS, Action.READ, body.agent_id, body.user_id)
    hits = await turn_search.search(resources, scope, body.query, filters, body.limit)
    return search_response(hits.results, hits.stages, hits.degraded, explain=body.explain)
