"""The state of a session: its keys, its transcript, and the files that show them."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from services.gateway import state_keys
from services.gateway.api_model import ApiModel, example
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
from services.gateway.state_keys import Key, KeyResponse, ValueBody
from shared.conversation.sessions import files
from shared.conversation.sessions.state import append_entry, open_state, read_working_memory_key
from shared.conversation.state.types import TranscriptDraft
from shared.foundation.roles import Role

router = APIRouter(prefix="/v1/sessions/{session_id:session}", tags=["session state"])


class TranscriptEntryBody(ApiModel):
    """An entry of a transcript."""

    model_config = example({"role": "assistant", "content": "Asked for the key to the garden."})

    role: Role
    content: str
    metadata: dict[str, str] = {}

    def draft(self) -> TranscriptDraft:
        """Return the entry to add. Raise errors.Invalid if it breaks a rule."""
        return TranscriptDraft(self.role, self.content, self.metadata).validated()


@router.get("/working-memory")
async def read_working_memory(
    resources: ResourcesDep, caller: ReadCaller, session_id: SessionId
) -> JsonResponse:
    """Read the text under the key `working_memory`. It is empty if there is none."""
    return JsonResponse({"value": await read_working_memory_key(resources, caller, session_id)})


@router.get("/kv")
async def list_keys(
    resources: ResourcesDep,
    caller: ReadCaller,
    session_id: SessionId,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> JsonResponse:
    """List keys with their values, least recently written first. At the limit, the first is evicted."""
    return await state_keys.list_keys(open_state(resources, caller, session_id), limit, cursor)


@router.put("/kv/{key:path}", response_model=KeyResponse)
async def set_key(
    resources: ResourcesDep, caller: WriteCaller, session_id: SessionId, key: Key, body: ValueBody
) -> JsonResponse:
    """Write a key. At the limit, the key that was written least recently is evicted."""
    return await state_keys.set_key(open_state(resources, caller, session_id, write=True), key, body)


@router.get("/kv/{key:path}", response_model=KeyResponse)
async def get_key(
    resources: ResourcesDep, caller: ReadCaller, session_id: SessionId, key: Key
) -> JsonResponse:
    """Read a key."""
    return await state_keys.get_key(open_state(resources, caller, session_id), key)


@router.delete("/kv/{key:path}")
async def delete_key(
    resources: ResourcesDep, caller: WriteCaller, session_id: SessionId, key: Key
) -> JsonResponse:
    """Delete a key. If there is none, nothing changes and `deleted` is false."""
    return await state_keys.delete_key(open_state(resources, caller, session_id, write=True), key)


@router.post("/transcript", status_code=HTTPStatus.CREATED)
async def append_to_transcript(
    resources: ResourcesDep,
    caller: WriteCaller,
    session_id: SessionId,
    body: TranscriptEntryBody,
    idempotency_key: IdempotencyKeyDep,
) -> JsonResponse:
    """Append an entry to the transcript. At the limit, the oldest entry is evicted."""
    return JsonResponse(
        await append_entry(resources, caller, session_id, body.draft(), idempotency_key), HTTPStatus.CREATED
    )


@router.get("/transcript")
async def read_transcript(
    resources: ResourcesDep,
    caller: ReadCaller,
    session_id: SessionId,
    last: Annotated[int, Query(ge=1, le=1000)] = 20,
) -> JsonResponse:
    """Read the last entries of the transcript, oldest first."""
    async with open_state(resources, caller, session_id) as store:
        entries = await store.transcript(last)
    return JsonResponse({"results": [entry.to_json() for entry in entries], "next_cursor": None})


@router.get("/files")
async def list_files(resources: ResourcesDep, caller: ReadCaller, session_id: SessionId) -> JsonResponse:
    """List the files of a session by name, each with the time of the last write to its content."""
    return JsonResponse(
        {"results": await files.list_files(resources, caller, session_id), "next_cursor": None}
    )


@router.get("/files/{name:path}")
async def read_file(
    resources: ResourcesDep, caller: ReadCaller, session_id: SessionId, name: str
) -> Response:
    """Read a file: `kv.json`, `spend.json`, `transcript.md`, or `collections/<label>.json`."""
    file = await files.read_file(resources, caller, session_id, name)
    # Agents write the content, so a browser must not run it as a web page.
    return Response(file.content, media_type=file.media_type, headers={"x-content-type-options": "nosniff"})
