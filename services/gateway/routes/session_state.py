"""The state of a session: its keys, its transcript, and the files that show them."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from services.gateway import state_keys
from services.gateway.api_model import ApiModel, example
from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import (
    Cursor,
    IdempotencyKeyDep,
    Limit,
    ReadCaller,
    ResourcesDep,
    WriteCaller,
)
from services.gateway.etag import Condition, KnownVersion
from services.gateway.paths import SessionId
from services.gateway.response_models import Page
from services.gateway.responses import JsonResponse
from services.gateway.state_keys import DeletedKeyResponse, Key, KeyResponse, ValueBody
from services.gateway.state_response_models import (
    SessionFile,
    SessionFileInfo,
    TranscriptEntryResponse,
    WorkingMemoryText,
)
from shared.conversation.sessions import files
from shared.conversation.sessions.state import append_entry, open_state, read_working_memory_key
from shared.conversation.state.types import TranscriptDraft
from shared.foundation.roles import Role

router = authenticated_router(prefix="/v1/sessions/{session_id:session}", tags=["session state"])


class TranscriptEntryBody(ApiModel):
    """An entry of a transcript."""

    model_config = example({"role": "assistant", "content": "Asked for the key to the garden."})

    role: Role
    content: str
    metadata: dict[str, str] = {}

    def draft(self) -> TranscriptDraft:
        """Return the entry to add. Raise errors.Invalid if it breaks a rule."""
        return TranscriptDraft(self.role, self.content, self.metadata).validated()


@router.get("/working-memory", response_model=WorkingMemoryText)
async def read_working_memory(
    resources: ResourcesDep, caller: ReadCaller, session_id: SessionId
) -> JsonResponse:
    """Read the text under the key `working_memory`. It is empty if there is none."""
    return JsonResponse({"value": await read_working_memory_key(resources, caller, session_id)})


@router.get("/kv", response_model=Page[KeyResponse])
async def list_session_keys(
    resources: ResourcesDep,
    caller: ReadCaller,
    session_id: SessionId,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> JsonResponse:
    """List keys with their values, least recently written first. At the limit, the first is evicted."""
    return await state_keys.list_keys(open_state(resources, caller, session_id), limit, cursor)


@router.put("/kv/{key:path}", response_model=KeyResponse)
async def set_session_key(
    resources: ResourcesDep,
    caller: WriteCaller,
    session_id: SessionId,
    key: Key,
    body: ValueBody,
    expected: Condition,
) -> Response:
    """Write a key, if the condition in the headers is met.

    At the limit, the key that was written least recently is evicted.
    """
    opened = open_state(resources, caller, session_id, write=True)
    return await state_keys.set_key(opened, key, body, expected)


@router.get("/kv/{key:path}", response_model=KeyResponse)
async def get_session_key(
    resources: ResourcesDep,
    caller: ReadCaller,
    session_id: SessionId,
    key: Key,
    if_none_match: KnownVersion = None,
) -> Response:
    """Read a key, with its version as an entity tag."""
    return await state_keys.get_key(open_state(resources, caller, session_id), key, if_none_match)


@router.delete("/kv/{key:path}", response_model=DeletedKeyResponse)
async def delete_session_key(
    resources: ResourcesDep, caller: WriteCaller, session_id: SessionId, key: Key, expected: Condition
) -> JsonResponse:
    """Delete a key, if the condition in the headers is met. If there is none, `deleted` is false."""
    opened = open_state(resources, caller, session_id, write=True)
    return await state_keys.delete_key(opened, key, expected)


@router.post("/transcript", status_code=HTTPStatus.CREATED, response_model=TranscriptEntryResponse)
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


@router.get("/transcript", response_model=Page[TranscriptEntryResponse])
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


_FILE: dict[str, Any] = {
    "model": SessionFile,
    "content": {"text/markdown": {"schema": {"type": "string"}}},
}


@router.get("/files", response_model=Page[SessionFileInfo])
async def list_session_files(
    resources: ResourcesDep, caller: ReadCaller, session_id: SessionId
) -> JsonResponse:
    """List the files of a session by name, each with the time of the last write to its content."""
    return JsonResponse(
        {"results": await files.list_files(resources, caller, session_id), "next_cursor": None}
    )


@router.get("/files/{name:path}", response_class=Response, responses={HTTPStatus.OK: _FILE})
async def read_session_file(
    resources: ResourcesDep, caller: ReadCaller, session_id: SessionId, name: str
) -> Response:
    """Read a file: `kv.json`, `spend.json`, `transcript.md`, or `collections/<label>.json`."""
    file = await files.read_file(resources, caller, session_id, name)
    # Agents write the content, so a browser must not run it as a web page.
    return Response(file.content, media_type=file.media_type, headers={"x-content-type-options": "nosniff"})
