"""The transcript of a session: what its agent notes down, apart from the turns of its conversation."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query

from services.gateway.api_model import Body, example
from services.gateway.dependencies import Once, Opened, Reader, Writer
from services.gateway.paths import SessionId
from services.gateway.responses import Json
from shared.conversation.sessions.state import append_entry, open_state
from shared.conversation.state.types import Draft
from shared.foundation.roles import Role

router = APIRouter(prefix="/v1/sessions/{session_id:session}/transcript", tags=["session state"])


class EntryBody(Body):
    """An entry of a transcript."""

    model_config = example({"role": "assistant", "content": "Asked for the key to the garden."})

    role: Role
    content: str
    metadata: dict[str, str] = {}

    def draft(self) -> Draft:
        """Return what is to be added, checked."""
        return Draft(self.role, self.content, self.metadata).checked()


@router.post("", status_code=HTTPStatus.CREATED)
async def append_to_transcript(
    opened: Opened, caller: Writer, session_id: SessionId, body: EntryBody, once: Once
) -> Json:
    """Add an entry; over the cap, the oldest goes."""
    return Json(await append_entry(opened, caller, session_id, body.draft(), once), HTTPStatus.CREATED)


@router.get("")
async def read_transcript(
    opened: Opened,
    caller: Reader,
    session_id: SessionId,
    last: Annotated[int, Query(ge=1, le=1000)] = 20,
) -> Json:
    """Read the last entries, oldest first."""
    async with open_state(opened, caller, session_id) as store:
        entries = await store.transcript(last)
    return Json({"results": [entry.shown() for entry in entries], "next_cursor": None})
