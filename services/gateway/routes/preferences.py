"""Preferences of users: rules that set a slot or change a template, and which of them apply."""

from typing import Annotated

from fastapi import Path
from starlette.responses import Response

from services.gateway import etag, responses
from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import (
    AgentId,
    Cursor,
    Limit,
    ReadCaller,
    ReadScope,
    ResourcesDep,
    UserId,
    WriteCaller,
)
from services.gateway.etag import Condition, KnownVersion
from services.gateway.preference_models import (
    DeletedPreference,
    PreferenceBody,
    ResolveBody,
    ResolvedPreferences,
)
from services.gateway.response_models import Page
from services.gateway.responses import JsonResponse
from services.gateway.waiting import WAITS
from shared.lifecycle import delete_preference as delete_preference_everywhere
from shared.memory.preferences import read, resolve, write
from shared.memory.preferences.preference import Preference
from shared.memory.preferences.resolve import Question
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area

router = authenticated_router(prefix="/v1/preferences", tags=["preferences"])
Key = Annotated[str, Path(description="The key, unique for its agent and user.", examples=["depth"])]


@router.post("/resolve", response_model=ResolvedPreferences)
async def resolve_preferences(resources: ResourcesDep, caller: ReadCaller, body: ResolveBody) -> JsonResponse:
    """Resolve which preferences apply in a flow or a situation, and why.

    They are found by flow, by a described situation that is like the given one, and by two links of
    `related` from those. One that still needs the user's permission does not apply, and neither does one
    whose memory is archived or not valid. A learnt wish has no condition: it applies where the situation is
    about what it says. Of two that contradict each other the one does whose condition was
    asked about as a whole, then the more specific one, and of two that are equally specific the later one.
    """
    scope = rights.scope(caller, Area.MEMORIES, Action.READ, body.agent_id, body.user_id)
    return JsonResponse(await resolve.resolve(resources, scope, Question(body.flow, body.situation)))


@router.get("", response_model=Page[Preference])
async def list_preferences(
    resources: ResourcesDep, scope: ReadScope, limit: Limit = 20, cursor: Cursor = None
) -> JsonResponse:
    """List what is stored for the agent and, with a user, for this user, oldest first."""
    rows = await read.list_preferences(resources, scope, limit + 1, responses.decode_cursor(cursor))
    return responses.page_response(
        rows, limit, lambda row: row.to_json(), lambda row: (row.created_at, row.id)
    )


@router.put("/{key:path}", response_model=Preference, dependencies=[WAITS])
async def put_preference(
    resources: ResourcesDep,
    caller: WriteCaller,
    key: Key,
    body: PreferenceBody,
    expected: Condition,
) -> Response:
    """Store a rule, or replace the one under this key, if a condition in the headers is met.

    What is about money, security or credentials needs the user's permission: with the key of its user, or an
    unbound one for an agent's rule, this is the permission. Any other key's change of it waits for that.
    """
    scope = rights.scope(caller, Area.MEMORIES, Action.WRITE, body.agent_id, body.user_id)
    preference = await write.put(resources, caller, scope, key, body.draft(), expected, trust=body.trust)
    return etag.versioned_response(preference.to_json())


@router.get("/{key:path}", response_model=Preference)
async def get_preference(
    resources: ResourcesDep, scope: ReadScope, key: Key, if_none_match: KnownVersion = None
) -> Response:
    """Read what stands under a key: the user's own rule, or else the agent's, or else the domain file's."""
    preference = await read.get(resources, scope, key)
    return etag.versioned_response(preference.to_json(), if_none_match)


@router.delete("/{key:path}", response_model=DeletedPreference)
async def delete_preference(
    resources: ResourcesDep,
    caller: WriteCaller,
    key: Key,
    expected: Condition,
    agent_id: AgentId = None,
    user_id: UserId = None,
) -> JsonResponse:
    """Delete the rule under a key of exactly this agent and user. If there is none, `deleted` is false."""
    scope = rights.scope(caller, Area.MEMORIES, Action.WRITE, agent_id, user_id)
    is_deleted = await delete_preference_everywhere.delete_preference(resources, scope, key, expected)
    return JsonResponse({"key": key, "deleted": is_deleted})
