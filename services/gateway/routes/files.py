"""Files of a session, made when they are asked for."""

from fastapi import APIRouter
from starlette.responses import Response

from services.gateway.dependencies import ReadCaller, ResourcesDep
from services.gateway.paths import SessionId
from services.gateway.responses import JsonResponse
from shared.conversation.sessions import files

router = APIRouter(prefix="/v1/sessions/{session_id:session}/files", tags=["session state"])


@router.get("")
async def list_files(resources: ResourcesDep, caller: ReadCaller, session_id: SessionId) -> JsonResponse:
    """List the files of a session by name, with the time of the last write that each shows."""
    return JsonResponse(
        {"results": await files.list_files(resources, caller, session_id), "next_cursor": None}
    )


@router.get("/{name:path}")
async def read_file(
    resources: ResourcesDep, caller: ReadCaller, session_id: SessionId, name: str
) -> Response:
    """Read a file: `kv.json`, `spend.json`, `transcript.md`, or `collections/<label>.json`."""
    file = await files.read_file(resources, caller, session_id, name)
    # What a file shows was written by others: a browser must not take it for a page.
    return Response(file.content, media_type=file.media_type, headers={"x-content-type-options": "nosniff"})
