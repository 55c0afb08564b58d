"""Sessions: open, list, read and delete them, and build the context of a session's next model call."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field

from services.gateway import responses
from services.gateway.api_model import ApiModel, Count, Flag, example
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
from shared.conversation.sessions import read
from shared.conversation.sessions.session import Session, SessionKind
from shared.foundation import validation
from shared.foundation.optional_fields import without_none
from shared.foundation.roles import MAX_TURN_CONTENT
from shared.lifecycle import delete_session
from shared.memory.working import entries
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])


class SessionBody(ApiModel):
    """A session to open. Without an id it gets a UUIDv7."""

    model_config = example({"agent_id": "support", "user_id": "ada"})

    agent_id: str | None = None
    user_id: str | None = None
    kind: SessionKind = SessionKind.SESSION
    id: str | None = None
    name: str | None = None
    store_types: list[str] | None = None
    ttl_seconds: Annotated[Count, Field(ge=1, le=10 * 366 * 86_400)] | None = None


class ContextBody(ApiModel):
    """A user's message, for which to build the context of the next model call."""

    model_config = example({"message": "Book my usual trip to Paris.", "max_tokens": 4000})

    message: str
    system: str | None = None
    record_turn: Flag = True
    max_tokens: Annotated[Count, Field(ge=1)] | None = None
    explain: Flag = False

    def request(self) -> Request:
        """Return the request. Raise errors.Invalid if the message breaks a rule."""
        validation.check_text(self.message, "message", MAX_TURN_CONTENT)
        return Request(self.message, self.system, self.record_turn, self.max_tokens, self.explain)


class ContextResponse(ApiModel):
    """The context. `messages` can be sent to a chat model as they are."""

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
    """Open a session. If the id exists with the same properties, return the existing session."""
    session = await session_open.open_session(
        resources,
        caller,
        rights.scope(caller, Area.SESSIONS, Action.WRITE, body.agent_id, body.user_id),
        session_id=body.id,
        kind=body.kind,
        name=body.name,
        store_types=body.store_types,
        ttl_seconds=body.ttl_seconds,
        key=idempotency_key,
        holds_entries=entries.holds_entries,
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
    """List sessions, newest first."""
    rights.scope(caller, Area.SESSIONS, Action.READ, agent_id, user_id)
    filters = without_none(agent_id=agent_id, user_id=user_id, kind=kind)
    after = responses.decode_cursor(cursor)
    rows = await read.list_sessions(resources, caller, filters, limit + 1, after)
    return responses.page_response(
        rows, limit, lambda row: row.model_dump(mode="json"), lambda row: (row.created_at, row.id)
    )


@router.post("/{session_id:session}/context", response_model=ContextResponse)
async def build_context(
    resources: ResourcesDep,
    caller: WriteCaller,
    session_id: SessionId,
    body: ContextBody,
    idempotency_key: IdempotencyKeyDep,
) -> JsonResponse:
    """Build the context of the agent's next model call, and append the message as a turn."""
    return JsonResponse(
        await build.build_context(resources, caller, session_id, body.request(), idempotency_key)
    )


@router.get("/{session_id:session}", response_model=Session)
async def get_session(resources: ResourcesDep, caller: ReadCaller, session_id: SessionId) -> JsonResponse:
    """Read a session."""
    session = await read.read_session(resources, caller, session_id)
    return JsonResponse(session.model_dump(mode="json"))


@router.delete("/{session_id:session}")
async def close_session(resources: ResourcesDep, caller: WriteCaller, session_id: SessionId) -> JsonResponse:
    """Delete a session with its turns."""
    await delete_session.delete_session(resources, caller, session_id)
    return JsonResponse({"id": session_id, "deleted": True})
