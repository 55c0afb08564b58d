"""Scratch stores: `tmp` stores of an agent or a user, tied to no session."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path
from starlette.responses import Response

from services.gateway import etag
from services.gateway.dependencies import AgentId, Cursor, Limit, Opened, ReadingScope, UserId, Writer
from services.gateway.etag import IfMatch, IfNoneMatch
from services.gateway.responses import Json
from services.gateway.routes import collections, kv
from services.gateway.routes.collections import CollectionAnswer, CollectionBody, ListingAnswer, VectorBody
from services.gateway.routes.kv import KeyAnswer, ValueBody
from shared.conversation.state import scratch
from shared.conversation.state.tmp import Tmp
from shared.conversation.state.vector_search import nearest
from shared.conversation.values import json_codec
from shared.foundation.scope import Scope

router = APIRouter(prefix="/v1/stores/{name}", tags=["scratch stores"])
Name = Annotated[str, Path(examples=["notes"])]


async def _read(opened: Opened, scope: ReadingScope, name: Name) -> Tmp:
    return await scratch.open_scratch(opened, scope, name)


def _writing_scope(caller: Writer, agent_id: AgentId = None, user_id: UserId = None) -> Scope:
    return caller.scope(agent_id, user_id)


WritingScope = Annotated[Scope, Depends(_writing_scope)]


async def _write(opened: Opened, scope: WritingScope, name: Name) -> Tmp:
    return await scratch.open_scratch(opened, scope, name, write=True)


async def _remove(opened: Opened, scope: WritingScope, name: Name) -> Tmp:
    return await scratch.open_scratch(opened, scope, name)


Readable = Annotated[Tmp, Depends(_read)]
Writable = Annotated[Tmp, Depends(_write)]
# What takes away needs the right to write, and leaves no trace of its own.
Removable = Annotated[Tmp, Depends(_remove)]


@router.get("")
async def show_store(store: Readable, name: Name) -> Json:
    """Tell what a store holds and when it will be gone; one that was never written to is empty."""
    return Json(await scratch.show(store, name))


@router.delete("")
async def drop_store(store: Removable, name: Name) -> Json:
    """Delete everything that a store holds; an empty one is a no-op that says so."""
    return Json({"name": name, "deleted": await store.drop()})


@router.get("/kv")
async def list_store_keys(store: Readable, limit: Limit = 20, cursor: Cursor = None) -> Json:
    """List keys with their values, in the order of their last write."""
    return await kv.page_of_keys(store, limit, cursor)


@router.put("/kv/{key:path}", response_model=KeyAnswer)
async def set_store_key(store: Writable, key: kv.Key, body: ValueBody) -> Json:
    """Write a key."""
    return Json((await store.set_key(key, json_codec.decode(body.value))).shown())


@router.get("/kv/{key:path}", response_model=KeyAnswer)
async def get_store_key(store: Readable, key: kv.Key) -> Json:
    """Read a key."""
    return Json(kv.found(await store.get_key(key), key).shown())


@router.delete("/kv/{key:path}")
async def delete_store_key(store: Removable, key: kv.Key) -> Json:
    """Delete a key; one that is not there is a no-op that says so."""
    return Json({"key": key, "deleted": await store.delete_key(key)})


@router.get("/collections")
async def list_store_collections(store: Readable) -> Json:
    """List collections by label, without their values."""
    listed = await store.list_collections()
    return Json({"results": [listing.shown() for listing in listed], "next_cursor": None})


@router.post("/collections/{label:path}/search")
async def search_store_collection(store: Readable, label: collections.Label, body: VectorBody) -> Json:
    """Find the rows of a vec that are most like a vector, by cosine."""
    return Json({"results": await nearest(store, label, body.vector, body.limit)})


@router.put("/collections/{label:path}", response_model=ListingAnswer)
async def put_store_collection(
    store: Writable,
    label: collections.Label,
    body: CollectionBody,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> Json:
    """Write a collection as a whole, on condition if the request names one."""
    collection, expected = body.collection(), etag.expected(if_match, if_none_match)
    return collections.put(await store.put_collection(label, collection, index=body.index, expected=expected))


@router.get("/collections/{label:path}", response_model=CollectionAnswer)
async def get_store_collection(
    store: Readable, label: collections.Label, if_none_match: IfNoneMatch = None
) -> Response:
    """Read a collection, with its version as an entity tag."""
    return collections.told(await collections.found(store, label), if_none_match)


@router.delete("/collections/{label:path}")
async def remove_store_collection(
    store: Removable, label: collections.Label, if_match: IfMatch = None
) -> Json:
    """Remove a collection, on condition if the request names one."""
    expected = etag.expected(if_match, None)
    return Json({"label": label, "deleted": await store.remove_collection(label, expected=expected)})
