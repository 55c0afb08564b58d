"""The transcript of a session: what its agent notes down, apart from the turns of its conversation."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query

from services.gateway.api_model import ApiModel, example
from services.gateway.dependencies import IdempotencyKeyDep, ReadCaller, ResourcesDep, WriteCaller
from services.gateway.paths import SessionId
from services.gateway.responses import JsonResponse
from shared.conversation.sessions.state import append_entry, open_state
from shared.conversation.state.types import TranscriptDraft
from shared.foundation.roles import Role

router = APIRouter(prefix="/v1/sessions/{session_id:session}/transcript", tags=["session state"])


class EntryBody(ApiModel):
    """An entry of a transcript."""

    model_config = example({"role": "assistant", "content": "Asked for the key to the garden."})

    role: Role
    content: str
    metadata: dict[str, str] = {}

    def draft(self) -> TranscriptDraft:
        """Return what is to be added, checked."""
        return TranscriptDraft(self.role, self.content, self.metadata).validated()


@router.post("", status_code=HTTPStatus.CREATED)
async def append_to_transcript(
    resources: ResourcesDep,
    caller: WriteCaller,
    session_id: SessionId,
    body: EntryBody,
    idempotency_key: IdempotencyKeyDep,
) -> JsonResponse:
    """Add an entry; over the cap, the oldest goes."""
    return JsonResponse(
        await append_entry(resources, caller, session_id, body.draft(), idempotency_key), HTTPStatus.CREATED
    )


@router.get("")
async def read_transcript(
    resources: ResourcesDep,
    caller: ReadCaller,
    session_id: SessionId,
    last: Annotated[int, Query(ge=1, le=1000)] = 20,
) -> JsonResponse:
    """Read the last entries, oldest first."""
    async with open_state(resources, caller, session_id) as store:
        entries = await store.transcript(last)
    return JsonResponse({"results": [entry.to_json() for entry in entries], "next_cursor": None})
