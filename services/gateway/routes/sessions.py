"""Sessions: open, list, read and delete them, and build the context of a session's next model call."""

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Field

from services.gateway import responses
from services.gateway.api_model import ApiModel, Count, Flag, example
from services.gateway.authenticated_route import authenticated_router
from services.gateway.context_options import ContextOptionsBody
from services.gateway.dependencies import (
    MAY_READ,
    Cursor,
    IdempotencyKeyDep,
    Limit,
    ReadCaller,
    ResourcesDep,
    WriteCaller,
)
from services.gateway.filter_models import SessionFilterText, parse_filter_text
from services.gateway.memory_models import parse_metadata
from services.gateway.paths import SessionId
from services.gateway.response_models import DeletedRecord, Page
from services.gateway.responses import JsonResponse
from services.gateway.search_response import MemoryHit
from shared.context import build
from shared.context.request import Request
from shared.context.types import BlockKind
from shared.conversation.sessions import open as session_open
from shared.conversation.sessions import read, update
from shared.conversation.sessions.filter_fields import FIELDS as SESSION_FIELDS
from shared.conversation.sessions.filters import SessionFilters
from shared.conversation.sessions.session import Session, SessionKind
from shared.foundation import validation
from shared.foundation.roles import MAX_TURN_CONTENT
from shared.foundation.scope import Caller
from shared.lifecycle import delete_session
from shared.memory.working import entries
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area

router = authenticated_router(prefix="/v1/sessions", tags=["sessions"])


TtlSeconds = Annotated[Count, Field(ge=1, le=10 * 366 * 86_400)]
Metadata = Annotated[
    list[str] | None,
    Query(description="Pairs `name=value`, all of which a session must have.", examples=[["topic=travel"]]),
]


class SessionBody(ApiModel):
    """A session to open. Without an id it gets a UUIDv7."""

    model_config = example({"agent_id": "support", "user_id": "ada", "metadata": {"topic": "travel"}})

    agent_id: str | None = None
    user_id: str | None = None
    kind: SessionKind = SessionKind.SESSION
    id: str | None = None
    name: str | None = None
    store_types: list[str] | None = None
    ttl_seconds: TtlSeconds | None = None
    metadata: dict[str, str] = {}


class SessionPatch(ApiModel):
    """Fields to change. Fields that are not named stay as they are; metadata is replaced as a whole.

    Null takes away the name or the time to live. The name of a patrol or subagent can't be changed.
    """

    model_config = example({"name": "trip-to-paris", "metadata": {"topic": "travel"}})

    metadata: dict[str, str] | None = None
    name: str | None = None
    ttl_seconds: TtlSeconds | None = None

    def changes(self) -> dict[str, Any]:
        """Return the named fields."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class ContextBody(ContextOptionsBody):
    """A user's message, for which to build the context of the next model call."""

    model_config = example({"message": "Book my usual trip to Paris.", "max_tokens": 4000})

    message: str
    system: str | None = None
    record_turn: Flag = True
    max_tokens: Annotated[Count, Field(ge=1)] | None = None
    explain: Flag = False

    def request(self, caller: Caller) -> Request:
        """Return the request. Raise errors.Invalid if the message breaks a rule, and as `options` does."""
        validation.check_text(self.message, "message", MAX_TURN_CONTENT)
        fields = self.model_dump(include={"message", "system", "record_turn", "max_tokens", "explain"})
        return Request(**fields, options=self.options(caller))


class BlockResponse(ApiModel):
    """A block of a context. The next context repeats the stable ones in the same place."""

    kind: BlockKind
    text: str
    ids: list[str]
    stability: Literal["stable", "volatile"]


class ContextResponse(ApiModel):
    """The context. `messages` can be sent to a chat model as they are."""

    messages: list[dict[str, str]]
    blocks: list[BlockResponse]
    recalled: list[MemoryHit]
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
        metadata=body.metadata,
        key=idempotency_key,
        holds_entries=entries.holds_entries,
    )
    return JsonResponse(session, HTTPStatus.CREATED)


@router.get("", response_model=Page[Session])
async def list_sessions(  # noqa: PLR0913
    resources: ResourcesDep,
    caller: ReadCaller,
    agent_id: str | None = None,
    user_id: str | None = None,
    kind: SessionKind | None = None,
    metadata: Metadata = None,
    created_after: datetime | None = None,
    created_before: datetime | None = None,
    filter: SessionFilterText = None,  # noqa: A002 (the name of the parameter)
    limit: Limit = 20,
    cursor: Cursor = None,
) -> JsonResponse:
    """List sessions, newest first. All filters must hold; times are inclusive."""
    rights.scope(caller, Area.SESSIONS, Action.READ, agent_id, user_id)
    filters = SessionFilters(
        agent_id=agent_id,
        user_id=user_id,
        kind=kind,
        created_after=created_after,
        created_before=created_before,
        metadata=parse_metadata(metadata or []),
        expression=parse_filter_text(filter, SESSION_FIELDS),
    )
    after = responses.decode_cursor(cursor)
    rows = await read.list_sessions(resources, caller, filters, limit + 1, after)
    return responses.page_response(
        rows, limit, lambda row: row.model_dump(mode="json"), lambda row: (row.created_at, row.id)
    )


@router.post("/{session_id:session}/context", response_model=ContextResponse, dependencies=[MAY_READ])
async def build_context(
    resources: ResourcesDep,
    caller: WriteCaller,
    session_id: SessionId,
    body: ContextBody,
    idempotency_key: IdempotencyKeyDep,
) -> JsonResponse:
    """Build the context of the agent's next model call, and append the message as a turn.

    The key needs the right to write, and the right to read what the context is made of.
    """
    return JsonResponse(
        await build.build_context(resources, caller, session_id, body.request(caller), idempotency_key)
    )


@router.get("/{session_id:session}", response_model=Session)
async def get_session(resources: ResourcesDep, caller: ReadCaller, session_id: SessionId) -> JsonResponse:
    """Read a session."""
    session = await read.read_session(resources, caller, session_id)
    return JsonResponse(session.model_dump(mode="json"))


@router.patch("/{session_id:session}", response_model=Session)
async def change_session(
    resources: ResourcesDep, caller: WriteCaller, session_id: SessionId, body: SessionPatch
) -> JsonResponse:
    """Change the metadata, the name or the time to live of a session. Its time to live starts anew."""
    session = await update.update_session(resources, caller, session_id, body.changes())
    return JsonResponse(session.model_dump(mode="json"))


@router.delete("/{session_id:session}", response_model=DeletedRecord)
async def close_session(resources: ResourcesDep, caller: WriteCaller, session_id: SessionId) -> JsonResponse:
    """Delete a session with its turns."""
    await delete_session.delete_session(resources, caller, session_id)
    return JsonResponse({"id": session_id, "deleted": True})
