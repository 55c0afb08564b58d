"""Skills of agents: how something is done, in Markdown, with files; as SKILL.md folders in and out."""

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Path, Request
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
from services.gateway.media_types import require_zip
from services.gateway.response_models import Page
from services.gateway.responses import JsonResponse
from services.gateway.skill_models import (
    DeletedSkill,
    FoundSkills,
    ImportedSkills,
    SkillBody,
    SkillSearchBody,
)
from services.gateway.waiting import WAITS
from shared.lifecycle import delete_skill as delete_skill_everywhere
from shared.memory.skills import read, search, transfer, write
from shared.memory.skills.skill import Skill, SkillInfo, SkillVersion
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area

router = authenticated_router(prefix="/v1/skills", tags=["skills"])
Name = Annotated[
    str, Path(description="The name, unique for its agent and user.", examples=["refund-an-order"])
]
_ZIP = {"application/zip": {"schema": {"type": "string", "format": "binary"}}}
_IMPORT: dict[str, Any] = {"requestBody": {"required": True, "content": _ZIP}}
_BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


@router.get("", response_model=Page[SkillInfo])
async def list_skills(
    resources: ResourcesDep, scope: ReadScope, limit: Limit = 20, cursor: Cursor = None
) -> JsonResponse:
    """List the agent's skills and, with a user, those of this user, without their content, oldest first."""
    rows = await read.list_skills(resources, scope, limit + 1, responses.decode_cursor(cursor))
    return responses.page_response(
        rows, limit, lambda row: row.to_json(with_content=False), lambda row: (row.created_at, row.id)
    )


@router.post("/search", response_model=FoundSkills)
async def search_skills(resources: ResourcesDep, caller: ReadCaller, body: SkillSearchBody) -> JsonResponse:
    """Search names, summaries and descriptions, by keywords and meaning. A user's own hides the agent's."""
    scope = rights.scope(caller, Area.MEMORIES, Action.READ, body.agent_id, body.user_id)
    found = await search.search(resources, scope, body.query, body.limit)
    results = [hit.skill.to_json(with_content=False) | {"score": hit.score} for hit in found.results]
    return JsonResponse({"results": results, "stages": found.stages, "degraded": found.degraded})


@router.post("/import", status_code=HTTPStatus.CREATED, openapi_extra=_IMPORT, response_model=ImportedSkills)
async def import_skills(
    resources: ResourcesDep,
    caller: WriteCaller,
    request: Request,
    agent_id: AgentId = None,
    user_id: UserId = None,
) -> JsonResponse:
    """Import the SKILL.md folders of a zip archive, all or none, each as a new version. Nothing is executed.

    An archive has at most 4 MiB and 1024 files, unpacked at most 8 MiB and each file 1 MiB. `warnings` tell
    what was understood differently than it was written, or not at all.
    """
    require_zip(request)
    scope = rights.scope(caller, Area.MEMORIES, Action.WRITE, agent_id, user_id)
    results = await transfer.import_zip(resources, scope, await request.body(), caller.origin)
    return JsonResponse({"results": results}, HTTPStatus.CREATED)


@router.put("/{skill}", response_model=Skill, dependencies=[WAITS])
async def put_skill(
    resources: ResourcesDep, caller: WriteCaller, skill: Name, body: SkillBody, expected: Condition
) -> Response:
    """Store a skill, or replace the one of this name, if a condition in the headers is met.

    What the request leaves out, and its files, stay as they are.
    """
    scope = rights.scope(caller, Area.MEMORIES, Action.WRITE, body.agent_id, body.user_id)
    stored = await write.put(
        resources, scope, skill, body.draft(), caller.origin.lowered(body.trust), expected
    )
    return etag.versioned_response(stored.to_json())


@router.get("/{skill}", response_model=Skill)
async def get_skill(
    resources: ResourcesDep, scope: ReadScope, skill: Name, if_none_match: KnownVersion = None
) -> Response:
    """Read a skill, the user's own or else the agent's.

    That is no use of it: contexts that show it and the tool `skill_load` note one.
    """
    found = await read.find(resources, scope, skill)
    return etag.versioned_response(found.to_json(), if_none_match)


@router.delete("/{skill}", response_model=DeletedSkill)
async def delete_skill(
    resources: ResourcesDep,
    caller: WriteCaller,
    skill: Name,
    expected: Condition,
    agent_id: AgentId = None,
    user_id: UserId = None,
) -> JsonResponse:
    """Delete the skill of exactly this agent and user, with its versions and files, and where it was shown.

    If there is none, `deleted` is false.
    """
    scope = rights.scope(caller, Area.MEMORIES, Action.WRITE, agent_id, user_id)
    is_deleted = await delete_skill_everywhere.delete_skill(resources, scope, skill, expected)
    return JsonResponse({"name": skill, "deleted": is_deleted})


@router.get("/{skill}/versions", response_model=Page[SkillVersion])
async def list_skill_versions(
    resources: ResourcesDep, scope: ReadScope, skill: Name, limit: Limit = 20, cursor: Cursor = None
) -> JsonResponse:
    """List what a skill was, and is, newest first."""
    after = responses.decode_cursor(cursor)
    rows = await read.list_versions(resources, scope, skill, limit + 1, after)
    return responses.page_response(rows, limit, lambda row: row.model_dump(mode="json"), _position)


def _position(version: SkillVersion) -> tuple[datetime, str]:
    return version.created_at, str(version.version)


@router.get("/{skill}/export", response_class=Response, responses={HTTPStatus.OK: {"content": _ZIP}})
async def export_skill(resources: ResourcesDep, scope: ReadScope, skill: Name) -> Response:
    """Read a skill as a zip archive of its folder: SKILL.md, and its files."""
    archive = await transfer.export(resources, scope, skill)
    headers = {"content-disposition": f'attachment; filename="{skill}.zip"'}
    return Response(archive, headers=headers, media_type="application/zip")


@router.get(
    "/{skill}/files/{path:path}", response_class=Response, responses={HTTPStatus.OK: {"content": _BYTES}}
)
async def get_skill_file(resources: ResourcesDep, scope: ReadScope, skill: Name, path: str) -> Response:
    """Read a file of a skill: its bytes as they were imported."""
    content = await read.read_file(resources, scope, skill, path)
    # Whatever the file is, no browser shows or runs it.
    headers = {"x-content-type-options": "nosniff", "content-disposition": "attachment"}
    return Response(content, headers=headers, media_type="application/octet-stream")
