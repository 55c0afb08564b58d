"""Long-term memory in and out, as lines of JSON."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import StreamingResponse

from services.gateway.dependencies import AgentId, ReadCaller, ResourcesDep, UserId, WriteCaller
from services.gateway.responses import JsonResponse
from shared.lifecycle.transfer import transfer

router = APIRouter(prefix="/v1/memories", tags=["memories"])


@router.get("/export")
async def export_memories(
    resources: ResourcesDep, caller: ReadCaller, agent_id: AgentId = None, user_id: UserId = None
) -> StreamingResponse:
    """Stream a scope as NDJSON, archived entries too."""
    lines = transfer.export(resources, caller.scope(agent_id, user_id))
    return StreamingResponse(await _begun(lines), media_type="application/x-ndjson")


async def _begun(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Read the first line before the answer begins, so that an error is still a status."""
    first = await anext(lines, b"")

    async def whole() -> AsyncIterator[bytes]:
        yield first
        async for line in lines:
            yield line

    return whole()


@router.post("/import")
async def import_memories(
    resources: ResourcesDep,
    caller: WriteCaller,
    request: Request,
    agent_id: AgentId = None,
    user_id: UserId = None,
    restore: Annotated[bool, Query(description="Bring back what was deleted on purpose, too.")] = False,  # noqa: FBT002
) -> JsonResponse:
    """Take NDJSON lines as `export` gives them; the same id is skipped or updated, never doubled."""
    scope = caller.scope(agent_id, user_id)
    report = await transfer.import_stream(resources, scope, caller.key_id, request.stream(), restore=restore)
    return JsonResponse(report)
