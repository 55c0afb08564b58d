"""Keys of a session, and the one that is its working memory."""

from typing import Annotated, Any

from fastapi import APIRouter, Path

from services.gateway import responses
from services.gateway.api_model import Body, example
from services.gateway.dependencies import Cursor, Limit, Opened, Reader, Writer
from services.gateway.paths import SessionId
from services.gateway.responses import Json
from shared.conversation.sessions.state import open_state, working_memory_read
from shared.conversation.state.protocol import Store
from shared.conversation.state.types import KeyEntry, time_of, write_of
from shared.conversation.values import json_codec
from shared.foundation import errors

router = APIRouter(prefix="/v1/sessions/{session_id:session}", tags=["session state"])
Key = Annotated[str, Path(examples=["plan"])]


class ValueBody(Body):
    """A value: true, a number, a text, or an object that tells its type."""

    model_config = example({"value": "three letters, then the garden"})

    value: Any


class KeyAnswer(Body):
    """A key with its value and its value's type: bool, int, float, str or obj."""

    key: str
    value: Any
    type: str
    updated_at: str


@router.get("/working-memory")
async def read_working_memory(opened: Opened, caller: Reader, session_id: SessionId) -> Json:
    """Read the text under the key `working_memory`; empty if there is none."""
    return Json({"value": await working_memory_read(opened, caller, session_id)})


@router.get("/kv")
async def list_keys(
    opened: Opened, caller: Reader, session_id: SessionId, limit: Limit = 20, cursor: Cursor = None
) -> Json:
    """List keys with their values in the order of their last write: the first is the next to make room."""
    async with open_state(opened, caller, session_id) as store:
        return await page_of_keys(store, limit, cursor)


async def page_of_keys(store: Store, limit: int, cursor: str | None) -> Json:
    """Return a page of a store's keys."""
    place = responses.place_of(cursor)
    rows = await store.list_keys(limit + 1, 0 if place is None else write_of(place[0]))
    return responses.page(rows, limit, KeyEntry.shown, lambda row: (time_of(row.written), "key"))


@router.put("/kv/{key:path}", response_model=KeyAnswer)
async def set_key(opened: Opened, caller: Writer, session_id: SessionId, key: Key, body: ValueBody) -> Json:
    """Write a key; over the cap, the key that was written least recently goes."""
    value = json_codec.decode(body.value)
    async with open_state(opened, caller, session_id, write=True) as store:
        entry = await store.set_key(key, value)
    return Json(entry.shown())


@router.get("/kv/{key:path}", response_model=KeyAnswer)
async def get_key(opened: Opened, caller: Reader, session_id: SessionId, key: Key) -> Json:
    """Read a key."""
    async with open_state(opened, caller, session_id) as store:
        return Json(found(await store.get_key(key), key).shown())


def found(entry: KeyEntry | None, key: str) -> KeyEntry:
    """Return an entry; raise errors.NotFound if it is none."""
    if entry is None:
        raise errors.NotFound(f"key not found: {key}")
    return entry


@router.delete("/kv/{key:path}")
async def delete_key(opened: Opened, caller: Writer, session_id: SessionId, key: Key) -> Json:
    """Delete a key; one that is not there is a no-op that says so."""
    async with open_state(opened, caller, session_id, write=True) as store:
        return Json({"key": key, "deleted": await store.delete_key(key)})
