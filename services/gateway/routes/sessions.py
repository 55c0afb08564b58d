"""Sessions, their turns, and the context of a turn: the main job."""

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from services.gateway import errors as problems
from services.gateway import responses
from services.gateway.api_model import ApiModel, BatchApiModel, Count, Flag, example, parse
from services.gateway.dependencies import (
    Cursor,
    IdempotencyKeyDep,
    Limit,
    ReadCaller,
    ResourcesDep,
    WriteCaller,
)
from services.gateway.paths import SessionId
from services.gateway.responses import JsonResponse
from shared.context import build
from shared.context.types import Request
from shared.conversation.sessions import open as session_open
from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.session import Session, SessionKind
from shared.conversation.turns import append, window
from shared.conversation.turns.turn import Turn, TurnDraft
from shared.foundation import errors, validation
from shared.foundation.roles import MAX_TURN_CONTENT, Role
from shared.lifecycle import delete_session
from shared.platform.spend.charge import parse_turn_usage

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])


class SessionBody(ApiModel):
    """A session to open; without an id it gets a UUIDv7."""

    model_config = example({"agent_id": "support", "user_id": "ada"})

    agent_id: str | None = None
    user_id: str | None = None
    kind: SessionKind = SessionKind.SESSION
    id: str | None = None
    name: str | None = None
    store_types: list[str] | None = None
    ttl_seconds: Annotated[Count, Field(ge=1, le=10 * 366 * 86_400)] | None = None


class TurnBody(ApiModel):
    """A turn that was said."""

    model_config = example({"role": "assistant", "content": "Noted: no flights on Fridays."})

    role: Role
    content: str
    speaker: str | None = None
    created_at: datetime | None = None
    metadata: dict[str, str] = {}
    usage: dict[str, Any] | None = None

    def draft(self) -> TurnDraft:
        """Return what is to be appended, checked; `usage` is booked with it."""
        draft = TurnDraft(**self.model_dump(exclude={"usage"})).validated()
        return draft.model_copy(update={"usage": parse_turn_usage(self.usage)})


class TurnsBody(BatchApiModel):
    """Turns that were said, in order; each stands on its own."""

    model_config = example({"turns": [{"role": "user", "content": "Hello"}]})

    turns: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=1000)]


class ContextBody(ApiModel):
    """A user's message, for which the context of the next model call is wanted."""

    model_config = example({"message": "Book my usual trip to Paris.", "max_tokens": 4000})

    message: str
    system: str | None = None
    record_turn: Flag = True
    max_tokens: Annotated[Count, Field(ge=1)] | None = None
    explain: Flag = False

    def request(self) -> Request:
        """Return the request, checked."""
        validation.check_text(self.message, "message", MAX_TURN_CONTENT)
        return Request(self.message, self.system, self.record_turn, self.max_tokens, self.explain)


class ContextResponse(ApiModel):
    """The context: `messages` can be sent to a chat model as they are."""

    messages: list[dict[str, str]]
    blocks: list[dict[str, Any]]
    recalled: list[dict[str, Any]]
    first_turn: bool
    tokens: int
    stages: list[str]
    degraded: list[str]
    seq: int | None = None
    explain: dict[str, Any] | None = None


@router.post("", status_code=HTTPStatus.CREATED, response_model=Session)
async def open_session(
    resources: ResourcesDep, caller: WriteCaller, body: SessionBody, idempotency_key: IdempotencyKeyDep
) -> JsonResponse:
    """Open a session; the same id with the same properties answers the one that is there."""
    session = await session_open.open_session(
        resources,
        caller,
        caller.scope(body.agent_id, body.user_id),
        session_id=body.id,
        kind=body.kind,
        name=body.name,
        store_types=body.store_types,
        ttl_seconds=body.ttl_seconds,
        key=idempotency_key,
    )
    return JsonResponse(session, HTTPStatus.CREATED)


@router.get("")
async def list_sessions(
    resources: ResourcesDep,
    caller: ReadCaller,
    agent_id: str | None = None,
    user_id: str | None = None,
    kind: SessionKind | None = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> JsonResponse:
    """List sessions, the newest first."""
    caller.scope(agent_id, user_id)
    asked = {"agent_id": agent_id, "user_id": user_id, "kind": kind}
    wanted = {name: value for name, value in asked.items() if value is not None}
    after, idle = responses.decode_cursor(cursor), resources.settings.window_ttl
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        rows = await session_queries.page(connection, caller, idle, limit + 1, after, wanted)
    return responses.page_response(
        rows, limit, lambda row: row.model_dump(mode="json"), lambda row: (row.created_at, row.id)
    )


@router.post("/{session_id:session}/turns/batch", status_code=HTTPStatus.CREATED)
async def append_turns(
    resources: ResourcesDep,
    caller: WriteCaller,
    session_id: SessionId,
    body: TurnsBody,
    idempotency_key: IdempotencyKeyDep,
) -> JsonResponse:
    """Append up to 1000 turns; each result is {seq}, or the problem with that turn."""
    drafts: list[TurnDraft] = []
    refused: dict[int, dict[str, Any]] = {}
    for place, item in enumerate(body.turns):
        try:
            drafts.append(parse(TurnBody, item).draft())
        except errors.LociError as error:
            refused[place] = problems.of_error(error)
    results = await append.append(resources, caller, session_id, drafts, idempotency_key, refused)
    return JsonResponse(
        {"results": results}, HTTPStatus.CREATED if drafts else HTTPStatus.UNPROCESSABLE_ENTITY
    )


@router.post("/{session_id:session}/turns", status_code=HTTPStatus.CREATED)
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


@router.get("/{session_id:session}/turns")
async def list_turns(
    resources: ResourcesDep,
    caller: ReadCaller,
    session_id: SessionId,
    last: Annotated[int, Query(ge=1, le=100)] = 20,
) -> JsonResponse:
    """Read the conversation window: the last turns, none when the session has lain idle."""
    turns = await window.read_window(resources, caller, session_id, last)
    return JsonResponse({"results": [_shown(turn) for turn in turns], "next_cursor": None})


def _shown(turn: Turn) -> dict[str, Any]:
    return turn.model_dump(mode="json")


@router.post("/{session_id:session}/context", response_model=ContextResponse)
async def build_context(
    resources: ResourcesDep,
    caller: WriteCaller,
    session_id: SessionId,
    body: ContextBody,
    idempotency_key: IdempotencyKeyDep,
) -> JsonResponse:
    """Return what the agent's next model call should see, and record the message as a turn."""
    return JsonResponse(
        await build.build_context(resources, caller, session_id, body.request(), idempotency_key)
    )


@router.get("/{session_id:session}", response_model=Session)
async def get_session(resources: ResourcesDep, caller: ReadCaller, session_id: SessionId) -> JsonResponse:
    """Read a session."""
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        session = await session_open.get_session(
            connection, caller, session_id, resources.settings.window_ttl
        )
    return JsonResponse(session.model_dump(mode="json"))


@router.delete("/{session_id:session}")
async def close_session(resources: ResourcesDep, caller: WriteCaller, session_id: SessionId) -> JsonResponse:
    """Delete a session with its turns."""
    await delete_session.delete_session(resources, caller, session_id)
    return JsonResponse({"id": session_id, "deleted": True})
