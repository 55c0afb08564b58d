"""Export and import as NDJSON: of a scope with every kind of record, of its memories, of one conversation."""

from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from starlette.responses import StreamingResponse

from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import AgentId, ReadCaller, ResourcesDep, UserId, WriteCaller
from services.gateway.import_report_models import MemoryImportReport, ScopeImportReport
from services.gateway.media_types import require_lines
from services.gateway.paths import SessionId
from services.gateway.responses import JsonResponse
from shared.lifecycle.transfer import export_scope as scope_export
from shared.lifecycle.transfer import import_scope as scope_import
from shared.lifecycle.transfer import line_kinds, memory_lines
from shared.lifecycle.transfer.row_kind import GRAPH_KINDS
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area

router = authenticated_router(prefix="/v1")
_LINES: dict[str, Any] = {
    "content": {
        "application/x-ndjson": {
            "schema": {"type": "string", "description": "JSON objects, one a line."},
            "example": '{"kind":"memory","id":"0123456789ab","content":"Ada prefers trains."}\n',
        }
    }
}
_IMPORT: dict[str, Any] = {"requestBody": {"required": True, **_LINES}}
Restore = Annotated[bool, Query(description="Also import what was deleted on purpose.")]
Kinds = Annotated[
    str | None,
    Query(description="Some kinds of records, comma-separated; all by default.", examples=["session,turn"]),
]


@router.get(
    "/export",
    tags=["transfer"],
    response_class=StreamingResponse,
    responses={HTTPStatus.OK: _LINES},
)
async def export_scope(
    resources: ResourcesDep,
    caller: ReadCaller,
    agent_id: AgentId = None,
    user_id: UserId = None,
    kinds: Kinds = None,
) -> StreamingResponse:
    """Stream every record of a scope as NDJSON, each line with its `kind`.

    The scope is exact: the records of the user, or of the agent without a user, together with the agent's
    profile, texts, files and keys. Spend, keys of the API and what expires by itself are not carried.
    """
    scope = rights.scope(caller, Area.MEMORIES, Action.READ, agent_id, user_id)
    lines = scope_export.export_scope(resources, caller, scope, line_kinds.parse_kinds(kinds))
    return await _ndjson_response(lines)


@router.post(
    "/import",
    tags=["transfer"],
    openapi_extra=_IMPORT,
    response_model=ScopeImportReport,
    dependencies=[Depends(require_lines)],
)
async def import_scope(
    resources: ResourcesDep,
    caller: WriteCaller,
    request: Request,
    agent_id: AgentId = None,
    user_id: UserId = None,
    restore: Restore = False,  # noqa: FBT002
) -> JsonResponse:
    """Import the lines of an export, by id: sending them again changes nothing. At most 32 MiB.

    A line without a `kind` is a memory. The line of a session comes before those of its records.
    """
    scope = rights.scope(caller, Area.MEMORIES, Action.WRITE, agent_id, user_id)
    return JsonResponse(
        await scope_import.import_scope(resources, caller, scope, request.stream(), restore=restore)
    )


@router.get(
    "/memories/export",
    tags=["memories"],
    response_class=StreamingResponse,
    responses={HTTPStatus.OK: _LINES},
)
async def export_memories(
    resources: ResourcesDep, caller: ReadCaller, agent_id: AgentId = None, user_id: UserId = None
) -> StreamingResponse:
    """Stream the memories of a scope as NDJSON, including archived ones."""
    scope = rights.scope(caller, Area.MEMORIES, Action.READ, agent_id, user_id)
    return await _ndjson_response(memory_lines.export(resources, scope))


@router.post(
    "/memories/import",
    tags=["memories"],
    openapi_extra=_IMPORT,
    response_model=MemoryImportReport,
    dependencies=[Depends(require_lines)],
)
async def import_memories(
    resources: ResourcesDep,
    caller: WriteCaller,
    request: Request,
    agent_id: AgentId = None,
    user_id: UserId = None,
    restore: Restore = False,  # noqa: FBT002
) -> JsonResponse:
    """Import the NDJSON lines of an export. A memory whose id exists is skipped or updated."""
    scope = rights.scope(caller, Area.MEMORIES, Action.WRITE, agent_id, user_id)
    report = await memory_lines.import_stream(resources, scope, caller, request.stream(), restore=restore)
    return JsonResponse(report)


@router.get(
    "/graph/export",
    tags=["knowledge graph"],
    response_class=StreamingResponse,
    responses={HTTPStatus.OK: _LINES},
)
async def export_graph(
    resources: ResourcesDep, caller: ReadCaller, agent_id: AgentId = None, user_id: UserId = None
) -> StreamingResponse:
    """Stream the entities and triples of a scope as NDJSON, also those that are over. Triples have names."""
    scope = rights.scope(caller, Area.MEMORIES, Action.READ, agent_id, user_id)
    return await _ndjson_response(scope_export.export_scope(resources, caller, scope, GRAPH_KINDS))


@router.post(
    "/graph/import",
    tags=["knowledge graph"],
    openapi_extra=_IMPORT,
    response_model=ScopeImportReport,
    dependencies=[Depends(require_lines)],
)
async def import_graph(
    resources: ResourcesDep,
    caller: WriteCaller,
    request: Request,
    agent_id: AgentId = None,
    user_id: UserId = None,
    restore: Restore = False,  # noqa: FBT002
) -> JsonResponse:
    """Import the lines of an export of a graph: entities by name, triples by what they say and when."""
    scope = rights.scope(caller, Area.MEMORIES, Action.WRITE, agent_id, user_id)
    report = await scope_import.import_scope(
        resources, caller, scope, request.stream(), restore=restore, kinds=GRAPH_KINDS
    )
    return JsonResponse(report)


@router.get(
    "/sessions/{session_id:session}/turns/export",
    tags=["sessions"],
    response_class=StreamingResponse,
    responses={HTTPStatus.OK: _LINES},
)
async def export_turns(
    resources: ResourcesDep, caller: ReadCaller, session_id: SessionId
) -> StreamingResponse:
    """Stream the turns of a session as NDJSON, in order, as an export of its scope has them."""
    return await _ndjson_response(scope_export.export_turns(resources, caller, session_id))


async def _ndjson_response(lines: AsyncIterator[bytes]) -> StreamingResponse:
    """Read the first line before the response starts, so that an error can still set its status."""
    first_line = await anext(lines, b"")

    async def all_lines() -> AsyncIterator[bytes]:
        yield first_line
        async for line in lines:
            yield line

    return StreamingResponse(all_lines(), media_type="application/x-ndjson")
