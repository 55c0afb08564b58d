"""Export and import of long-term memories as NDJSON."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import StreamingResponse

from services.gateway.dependencies import AgentId, ReadCaller, ResourcesDep, UserId, WriteCaller
from services.gateway.responses import JsonResponse
from shared.lifecycle.transfer import transfer
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area

router = APIRouter(prefix="/v1/memories", tags=["memories"])


@router.get("/export")
async def export_memories(
    resources: ResourcesDep, caller: ReadCaller, agent_id: AgentId = None, user_id: UserId = None
) -> StreamingResponse:
    """Stream the memories of a scope as NDJSON, including archived ones."""
    lines = transfer.export(resources, rights.scope(caller, Area.MEMORIES, Action.READ, agent_id, user_id))
    return StreamingResponse(await _with_first_line_read(lines), media_type="application/x-ndjson")


async def _with_first_line_read(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Read the first line before the response starts, so that an error can still set its status."""
    first_line = await anext(lines, b"")

    async def all_lines() -> AsyncIterator[bytes]:
        yield first_line
        async for line in lines:
            yield line

    return all_lines()


@router.post("/import")
async def import_memories(
    resources: ResourcesDep,
    caller: WriteCaller,
    request: Request,
    agent_id: AgentId = None,
    user_id: UserId = None,
    restore: Annotated[bool, Query(description="Also import memories that were deleted on purpose.")] = False,  # noqa: FBT002
) -> JsonResponse:
    """Import the NDJSON lines of an export. A memory whose id exists is skipped or updated."""
    scope = rights.scope(caller, Area.MEMORIES, Action.WRITE, agent_id, user_id)
    report = await transfer.import_stream(resources, scope, caller.key_id, request.stream(), restore=restore)
    return JsonResponse(report)
