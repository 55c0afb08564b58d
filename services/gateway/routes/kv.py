"""Keys of a session, and the one that is its working memory."""

from typing import Annotated, Any

from fastapi import APIRouter, Path

from services.gateway import responses
from services.gateway.api_model import ApiModel, example
from services.gateway.dependencies import Cursor, Limit, ReadCaller, ResourcesDep, WriteCaller
from services.gateway.paths import SessionId
from services.gateway.responses import JsonResponse
from shared.conversation.sessions.state import open_state, read_working_memory_key
from shared.conversation.state.protocol import StateStore
from shared.conversation.state.types import KeyEntry, time_to_version, version_to_time
from shared.conversation.values import json_codec
from shared.foundation import errors

router = APIRouter(prefix="/v1/sessions/{session_id:session}", tags=["session state"])
Key = Annotated[str, Path(examples=["plan"])]


class ValueBody(ApiModel):
    """A value: true, a number, a text, or an object that tells its type."""

    model_config = example({"value": "three letters, then the garden"})

    value: Any


class KeyResponse(ApiModel):
    """A key with its value and its value's type: bool, int, float, str or obj."""

    key: str
    value: Any
    type: str
    updated_at: str


@router.get("/working-memory")
async def read_working_memory(
    resources: ResourcesDep, caller: ReadCaller, session_id: SessionId
) -> JsonResponse:
    """Read the text under the key `working_memory`; empty if there is none."""
    return JsonResponse({"value": await read_working_memory_key(resources, caller, session_id)})


@router.get("/kv")
async def list_keys(
    resources: ResourcesDep,
    caller: ReadCaller,
    session_id: SessionId,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> JsonResponse:
    """List keys with their values in the order of their last write: the first is the next to make room."""
    async with open_state(resources, caller, session_id) as store:
        return await page_of_keys(store, limit, cursor)


async def page_of_keys(store: StateStore, limit: int, cursor: str | None) -> JsonResponse:
    """Return a page of a store's keys."""
    place = responses.decode_cursor(cursor)
    rows = await store.list_keys(limit + 1, 0 if place is None else time_to_version(place[0]))
    return responses.page_response(
        rows, limit, KeyEntry.to_json, lambda row: (version_to_time(row.version), "key")
    )


@router.put("/kv/{key:path}", response_model=KeyResponse)
async def set_key(
    resources: ResourcesDep, caller: WriteCaller, session_id: SessionId, key: Key, body: ValueBody
) -> JsonResponse:
    """Write a key; over the cap, the key that was written least recently goes."""
    value = json_codec.decode(body.value)
    async with open_state(resources, caller, session_id, write=True) as store:
        entry = await store.set_key(key, value)
    return JsonResponse(entry.to_json())


@router.get("/kv/{key:path}", response_model=KeyResponse)
async def get_key(
    resources: ResourcesDep, caller: ReadCaller, session_id: SessionId, key: Key
) -> JsonResponse:
    """Read a key."""
    async with open_state(resources, caller, session_id) as store:
        return JsonResponse(require_key(await store.get_key(key), key).to_json())


def require_key(entry: KeyEntry | None, key: str) -> KeyEntry:
    """Return an entry; raise errors.NotFound if it is none."""
    if entry is None:
        raise errors.NotFound(f"key not found: {key}")
    return entry


@router.delete("/kv/{key:path}")
async def delete_key(
    resources: ResourcesDep, caller: WriteCaller, session_id: SessionId, key: Key
) -> JsonResponse:
    """Delete a key; one that is not there is a no-op that says so."""
    async with open_state(resources, caller, session_id, write=True) as store:
        return JsonResponse({"key": key, "deleted": await store.delete_key(key)})
