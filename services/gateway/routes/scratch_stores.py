"""Scratch stores: `tmp` state stores of an agent or a user that belong to no session."""

from typing import Annotated

from fastapi import Depends, Path
from starlette.responses import Response

from services.gateway import etag, state_collections, state_keys
from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import (
    AgentId,
    Cursor,
    Limit,
    ReadCaller,
    ResourcesDep,
    UserId,
    WriteCaller,
)
from services.gateway.etag import Condition, IfMatch, IfNoneMatch, KnownVersion
from services.gateway.response_models import DeletedName, Page
from services.gateway.responses import JsonResponse
from services.gateway.state_collections import (
    CollectionBody,
    CollectionInfoResponse,
    CollectionResponse,
    Label,
    VectorBody,
)
from services.gateway.state_keys import DeletedKeyResponse, Key, KeyResponse, ValueBody
from services.gateway.state_response_models import DeletedLabel, ScratchStore, SimilarRows
from shared.conversation.state import scratch
from shared.conversation.state.tmp import RedisStateStore
from shared.conversation.state.vector_search import nearest
from shared.conversation.values import json_codec
from shared.foundation.scope import Scope
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area

router = authenticated_router(prefix="/v1/stores/{name}", tags=["scratch stores"])
Name = Annotated[str, Path(examples=["notes"])]


async def _read_scope(caller: ReadCaller, agent_id: AgentId = None, user_id: UserId = None) -> Scope:
    return rights.scope(caller, Area.SCRATCH_STORES, Action.READ, agent_id, user_id)


ReadScope = Annotated[Scope, Depends(_read_scope)]


async def _open_to_read(resources: ResourcesDep, scope: ReadScope, name: Name) -> RedisStateStore:
    return await scratch.open_scratch(resources, scope, name)


async def _write_scope(caller: WriteCaller, agent_id: AgentId = None, user_id: UserId = None) -> Scope:
    return rights.scope(caller, Area.SCRATCH_STORES, Action.WRITE, agent_id, user_id)


WriteScope = Annotated[Scope, Depends(_write_scope)]


async def _open_to_write(resources: ResourcesDep, scope: WriteScope, name: Name) -> RedisStateStore:
    return await scratch.open_scratch(resources, scope, name, write=True)


async def _open_to_delete(resources: ResourcesDep, scope: WriteScope, name: Name) -> RedisStateStore:
    return await scratch.open_scratch(resources, scope, name)


ReadableStore = Annotated[RedisStateStore, Depends(_open_to_read)]
WritableStore = Annotated[RedisStateStore, Depends(_open_to_write)]
# Deleting needs the right to write, but must not create a store that does not exist.
DeletableStore = Annotated[RedisStateStore, Depends(_open_to_delete)]


@router.get("", response_model=ScratchStore)
async def show_store(store: ReadableStore, name: Name) -> JsonResponse:
    """Read what a store holds and when it expires. A store that was never written to is empty."""
    return JsonResponse(await scratch.describe(store, name))


@router.delete("", response_model=DeletedName)
async def drop_store(resources: ResourcesDep, store: DeletableStore, name: Name) -> JsonResponse:
    """Delete everything in a store. If it is empty, nothing changes and `deleted` is false."""
    return JsonResponse({"name": name, "deleted": await scratch.drop(resources, store, name)})


@router.get("/kv", response_model=Page[KeyResponse])
async def list_store_keys(store: ReadableStore, limit: Limit = 20, cursor: Cursor = None) -> JsonResponse:
    """List keys with their values, in the order of their last write."""
    return await state_keys.page_of_keys(store, limit, cursor)


@router.put("/kv/{key:path}", response_model=KeyResponse)
async def set_store_key(store: WritableStore, key: Key, body: ValueBody, expected: Condition) -> Response:
    """Write a key, if the condition in the headers is met."""
    entry = await store.set_key(key, json_codec.decode(body.value), expected=expected)
    return etag.versioned_response(entry.to_json())


@router.get("/kv/{key:path}", response_model=KeyResponse)
async def get_store_key(store: ReadableStore, key: Key, if_none_match: KnownVersion = None) -> Response:
    """Read a key, with its version as an entity tag."""
    return state_keys.key_response(await store.get_key(key), key, if_none_match)


@router.delete("/kv/{key:path}", response_model=DeletedKeyResponse)
async def delete_store_key(store: DeletableStore, key: Key, expected: Condition) -> JsonResponse:
    """Delete a key, if the condition in the headers is met. If there is none, `deleted` is false."""
    return JsonResponse({"key": key, "deleted": await store.delete_key(key, expected=expected)})


@router.get("/collections", response_model=Page[CollectionInfoResponse])
async def list_store_collections(store: ReadableStore) -> JsonResponse:
    """List collections by label, without their values."""
    collections = await store.list_collections()
    return JsonResponse({"results": [info.to_json() for info in collections], "next_cursor": None})


@router.post("/collections/{label:path}/search", response_model=SimilarRows)
async def search_store_collection(store: ReadableStore, label: Label, body: VectorBody) -> JsonResponse:
    """Find the rows of a vec most similar to a vector, by cosine. The vec must be stored with `index`."""
    return JsonResponse({"results": await nearest(store, label, body.vector, body.limit)})


@router.put("/collections/{label:path}", response_model=CollectionInfoResponse)
async def put_store_collection(
    store: WritableStore,
    label: Label,
    body: CollectionBody,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Write a whole collection, if the condition in the headers is met."""
    collection, expected = body.collection(), etag.expected_versions(if_match, if_none_match)
    return state_collections.info_response(
        await store.put_collection(label, collection, index=body.index, expected=expected)
    )


@router.get("/collections/{label:path}", response_model=CollectionResponse)
async def get_store_collection(
    store: ReadableStore, label: Label, if_none_match: IfNoneMatch = None
) -> Response:
    """Read a collection, with its version as an entity tag."""
    return state_collections.snapshot_response(
        await state_collections.require_collection(store, label), if_none_match
    )


@router.delete("/collections/{label:path}", response_model=DeletedLabel)
async def remove_store_collection(
    store: DeletableStore, label: Label, if_match: IfMatch = None
) -> JsonResponse:
    """Delete a collection, if the condition in the headers is met."""
    expected = etag.expected_versions(if_match, None)
    return JsonResponse({"label": label, "deleted": await store.remove_collection(label, expected=expected)})
