"""Pinned texts: they stand in every context of an agent, or of one of its users."""

from typing import Annotated

from fastapi import Path
from starlette.responses import Response

from services.gateway import etag, responses
from services.gateway.api_model import ApiModel, Flag, RequestedTrust, example
from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import (
    AgentId,
    Cursor,
    Limit,
    ReadScope,
    ResourcesDep,
    UserId,
    WriteCaller,
)
from services.gateway.etag import Condition, KnownVersion
from services.gateway.response_models import Page
from services.gateway.responses import JsonResponse
from shared.memory.pinned import read, write
from shared.memory.pinned.pinned_text import PinnedText
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area

router = authenticated_router(prefix="/v1/pinned", tags=["pinned texts"])
Name = Annotated[str, Path(description="The name, unique for its agent and user.", examples=["persona"])]


class PinnedBody(ApiModel):
    """A text to pin. Without a user it stands in the contexts of all users of the agent."""

    model_config = example({"content": "Ada speaks French and is in a wheelchair.", "user_id": "ada"})

    content: str
    trust: RequestedTrust = None
    agent_id: str | None = None
    user_id: str | None = None


class DeletedPinnedText(ApiModel):
    """Whether there was a text under the name."""

    name: str
    deleted: Flag


@router.get("", response_model=Page[PinnedText])
async def list_pinned(
    resources: ResourcesDep, scope: ReadScope, limit: Limit = 20, cursor: Cursor = None
) -> JsonResponse:
    """List the agent's texts and, with a user, those of this user, oldest first."""
    rows = await read.list_texts(resources, scope, limit + 1, responses.decode_cursor(cursor))
    return responses.page_response(
        rows, limit, lambda row: row.model_dump(mode="json"), lambda row: (row.created_at, row.id)
    )


@router.put("/{name:path}", response_model=PinnedText)
async def put_pinned(
    resources: ResourcesDep,
    caller: WriteCaller,
    name: Name,
    body: PinnedBody,
    expected: Condition,
) -> Response:
    """Pin a text, or replace the one under this name, if a condition in the headers is met.

    A text has at most 4000 characters. If the texts of one context had more than 8000, it is a 409.
    """
    scope = rights.scope(caller, Area.MEMORIES, Action.WRITE, body.agent_id, body.user_id)
    pinned = await write.put(
        resources, scope, name, body.content, caller.origin.lowered(body.trust), expected
    )
    return etag.versioned_response(pinned.model_dump(mode="json"))


@router.get("/{name:path}", response_model=PinnedText)
async def get_pinned(
    resources: ResourcesDep, scope: ReadScope, name: Name, if_none_match: KnownVersion = None
) -> Response:
    """Read what stands under a name: the text of the user, or else that of the agent (without a user)."""
    pinned = await read.get(resources, scope, name)
    return etag.versioned_response(pinned.model_dump(mode="json"), if_none_match)


@router.delete("/{name:path}", response_model=DeletedPinnedText)
async def delete_pinned(
    resources: ResourcesDep,
    caller: WriteCaller,
    name: Name,
    expected: Condition,
    agent_id: AgentId = None,
    user_id: UserId = None,
) -> JsonResponse:
    """Delete the text under a name of exactly this agent and user. If there is none, `deleted` is false."""
    scope = rights.scope(caller, Area.MEMORIES, Action.WRITE, agent_id, user_id)
    return JsonResponse({"name": name, "deleted": await write.remove(resources, scope, name, expected)})
