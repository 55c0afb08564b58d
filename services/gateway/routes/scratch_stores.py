"""Scratch stores: `tmp` stores of an agent or a user, tied to no session."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path
from starlette.responses import Response

from services.gateway import etag
from services.gateway.dependencies import AgentId, Cursor, Limit, ReadScope, ResourcesDep, UserId, WriteCaller
from services.gateway.etag import IfMatch, IfNoneMatch
from services.gateway.responses import JsonResponse
from services.gateway.routes import collections, kv
from services.gateway.routes.collections import (
    CollectionBody,
    CollectionInfoResponse,
    CollectionResponse,
    VectorBody,
)
from services.gateway.routes.kv import KeyResponse, ValueBody
from shared.conversation.state import scratch
from shared.conversation.state.tmp import RedisStateStore
from shared.conversation.state.vector_search import nearest
from shared.conversation.values import json_codec
from shared.foundation.scope import Scope

router = APIRouter(prefix="/v1/stores/{name}", tags=["scratch stores"])
Name = Annotated[str, Path(examples=["notes"])]


async def _read(resources: ResourcesDep, scope: ReadScope, name: Name) -> RedisStateStore:
    return await scratch.open_scratch(resources, scope, name)


def _writing_scope(caller: WriteCaller, agent_id: AgentId = None, user_id: UserId = None) -> Scope:
    return caller.scope(agent_id, user_id)


WritingScope = Annotated[Scope, Depends(_writing_scope)]


async def _write(resources: ResourcesDep, scope: WritingScope, name: Name) -> RedisStateStore:
    return await scratch.open_scratch(resources, scope, name, write=True)


async def _remove(resources: ResourcesDep, scope: WritingScope, name: Name) -> RedisStateStore:
    return await scratch.open_scratch(resources, scope, name)


Readable = Annotated[RedisStateStore, Depends(_read)]
Writable = Annotated[RedisStateStore, Depends(_write)]
# What takes away needs the right to write, and leaves no trace of its own.
Removable = Annotated[RedisStateStore, Depends(_remove)]


@router.get("")
async def show_store(store: Readable, name: Name) -> JsonResponse:
    """Tell what a store holds and when it will be gone; one that was never written to is empty."""
    return JsonResponse(await scratch.describe(store, name))


@router.delete("")
async def drop_store(store: Removable, name: Name) -> JsonResponse:
    """Delete everything that a store holds; an empty one is a no-op that says so."""
    return JsonResponse({"name": name, "deleted": await store.drop()})


@router.get("/kv")
async def list_store_keys(store: Readable, limit: Limit = 20, cursor: Cursor = None) -> JsonResponse:
    """List keys with their values, in the order of their last write."""
    return await kv.page_of_keys(store, limit, cursor)


@router.put("/kv/{key:path}", response_model=KeyResponse)
async def set_store_key(store: Writable, key: kv.Key, body: ValueBody) -> JsonResponse:
    """Write a key."""
    return JsonResponse((await store.set_key(key, json_codec.decode(body.value))).to_json())


@router.get("/kv/{key:path}", response_model=KeyResponse)
async def get_store_key(store: Readable, key: kv.Key) -> JsonResponse:
    """Read a key."""
    return JsonResponse(kv.require_key(await store.get_key(key), key).to_json())


@router.delete("/kv/{key:path}")
async def delete_store_key(store: Removable, key: kv.Key) -> JsonResponse:
    """Delete a key; one that is not there is a no-op that says so."""
    return JsonResponse({"key": key, "deleted": await store.delete_key(key)})


@router.get("/collections")
async def list_store_collections(store: Readable) -> JsonResponse:
    """List collections by label, without their values."""
    listed = await store.list_collections()
    return JsonResponse({"results": [listing.to_json() for listing in listed], "next_cursor": None})


@router.post("/collections/{label:path}/search")
async def search_store_collection(
    store: Readable, label: collections.Label, body: VectorBody
) -> JsonResponse:
    """Find the rows of a vec that are most like a vector, by cosine."""
    return JsonResponse({"results": await nearest(store, label, body.vector, body.limit)})


@router.put("/collections/{label:path}", response_model=CollectionInfoResponse)
async def put_store_collection(
    store: Writable,
    label: collections.Label,
    body: CollectionBody,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> JsonResponse:
    """Write a collection as a whole, on condition if the request names one."""
    collection, expected = body.collection(), etag.expected_versions(if_match, if_none_match)
    return collections.info_response(
        await store.put_collection(label, collection, index=body.index, expected=expected)
    )


@router.get("/collections/{label:path}", response_model=CollectionResponse)
async def get_store_collection(
    store: Readable, label: collections.Label, if_none_match: IfNoneMatch = None
) -> Response:
    """Read a collection, with its version as an entity tag."""
    return collections.snapshot_response(await collections.require_collection(store, label), if_none_match)


@router.delete("/collections/{label:path}")
async def remove_store_collection(
    store: Removable, label: collections.Label, if_match: IfMatch = None
) -> JsonResponse:
    """Remove a collection, on condition if the request names one."""
    expected = etag.expected_versions(if_match, None)
    return JsonResponse({"label": label, "deleted": await store.remove_collection(label, expected=expected)})
