"""Labelled collections of a session: read a snapshot, change it, put it back if nobody else did."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import Field, Strict
from starlette.responses import Response

from services.gateway import etag
from services.gateway.api_model import ApiModel, Count, Flag, example
from services.gateway.dependencies import ReadCaller, ResourcesDep, WriteCaller
from services.gateway.etag import IfMatch, IfNoneMatch
from services.gateway.paths import SessionId
from services.gateway.responses import JsonResponse
from shared.conversation.sessions.state import open_state
from shared.conversation.state.protocol import StateStore
from shared.conversation.state.types import CollectionInfo, CollectionSnapshot
from shared.conversation.state.vector_search import nearest
from shared.conversation.values import collection_codec
from shared.conversation.values.collection import Collection
from shared.conversation.values.vector import Vec
from shared.foundation import errors

router = APIRouter(prefix="/v1/sessions/{session_id:session}/collections", tags=["session state"])
Label = Annotated[str, Path(examples=["plans"])]


class CollectionBody(ApiModel):
    """A collection as a whole: a doc, block, set, list, tuple, vec or tensor."""

    model_config = example({"type": "doc", "value": {"city": "Paris", "nights": 3}})

    type: str
    value: Any
    index: Flag = False

    def collection(self) -> Collection:
        """Return the collection, checked."""
        collection = collection_codec.decode_collection(self.type, self.value)
        if self.index and not isinstance(collection, Vec):
            raise errors.Invalid("index", "can be true of a vec alone")
        return collection


class CollectionInfoResponse(ApiModel):
    """A collection as it is listed; the version is also its entity tag."""

    label: str
    type: str
    index: bool
    size_bytes: int
    version: int
    updated_at: str


class CollectionResponse(CollectionInfoResponse):
    """A collection as it stood when it was read."""

    value: Any


class VectorBody(ApiModel):
    """A vector whose like are wanted."""

    model_config = example({"vector": [0.1, 0.9, 0.0], "limit": 5})

    vector: Annotated[list[Annotated[float, Strict()]], Field(min_length=1, max_length=65_536)]
    limit: Annotated[Count, Field(ge=1, le=100)] = 10


@router.get("")
async def list_collections(
    resources: ResourcesDep, caller: ReadCaller, session_id: SessionId
) -> JsonResponse:
    """List collections by label, without their values."""
    async with open_state(resources, caller, session_id) as store:
        listed = await store.list_collections()
    return JsonResponse({"results": [listing.to_json() for listing in listed], "next_cursor": None})


@router.post("/{label:path}/search")
async def search_collection(
    resources: ResourcesDep, caller: ReadCaller, session_id: SessionId, label: Label, body: VectorBody
) -> JsonResponse:
    """Find the rows of a vec that are most like a vector, by cosine; the vec must be put as an index."""
    async with open_state(resources, caller, session_id) as store:
        return JsonResponse({"results": await nearest(store, label, body.vector, body.limit)})


@router.put("/{label:path}", response_model=CollectionInfoResponse)
async def put_collection(
    resources: ResourcesDep,
    caller: WriteCaller,
    session_id: SessionId,
    label: Label,
    body: CollectionBody,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> JsonResponse:
    """Write a collection as a whole, on condition if the request names one."""
    collection, expected = body.collection(), etag.expected_versions(if_match, if_none_match)
    async with open_state(resources, caller, session_id, write=True) as store:
        listing = await store.put_collection(label, collection, index=body.index, expected=expected)
    return info_response(listing)


def info_response(listing: CollectionInfo) -> JsonResponse:
    """Answer what was put, with its entity tag."""
    return JsonResponse(listing.to_json(), headers={"etag": etag.to_etag(listing.version)})


@router.get("/{label:path}", response_model=CollectionResponse)
async def get_collection(
    resources: ResourcesDep,
    caller: ReadCaller,
    session_id: SessionId,
    label: Label,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Read a collection, with its version as an entity tag."""
    async with open_state(resources, caller, session_id) as store:
        snapshot = await require_collection(store, label)
    return snapshot_response(snapshot, if_none_match)


async def require_collection(store: StateStore, label: str) -> CollectionSnapshot:
    """Return a collection; raise errors.NotFound if there is none."""
    snapshot = await store.get_collection(label)
    if snapshot is None:
        raise errors.NotFound(f"collection not found: {label}")
    return snapshot


def snapshot_response(snapshot: CollectionSnapshot, if_none_match: str | None) -> Response:
    """Answer a snapshot, or that the reader has it."""
    version = snapshot.listing.version
    headers = {"etag": etag.to_etag(version)}
    if etag.is_current(if_none_match, version):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return JsonResponse(snapshot.to_json(), headers=headers)


@router.delete("/{label:path}")
async def remove_collection(
    resources: ResourcesDep,
    caller: WriteCaller,
    session_id: SessionId,
    label: Label,
    if_match: IfMatch = None,
) -> JsonResponse:
    """Remove a collection, on condition if the request names one; none there is a no-op that says so."""
    expected = etag.expected_versions(if_match, None)
    async with open_state(resources, caller, session_id, write=True) as store:
        return JsonResponse(
            {"label": label, "deleted": await store.remove_collection(label, expected=expected)}
        )
