"""Labelled collections of a session: read a snapshot, change it, put it back if nobody else did."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import Field, Strict
from starlette.responses import Response

from services.gateway import etag
from services.gateway.api_model import Body, Count, Flag, example
from services.gateway.dependencies import Opened, Reader, Writer
from services.gateway.etag import IfMatch, IfNoneMatch
from services.gateway.paths import SessionId
from services.gateway.responses import Json
from shared.conversation.sessions.state import open_state
from shared.conversation.state.protocol import Store
from shared.conversation.state.types import Listing, Snapshot
from shared.conversation.state.vector_search import nearest
from shared.conversation.values import collection_codec
from shared.conversation.values.collection import Collection
from shared.conversation.values.vector import Vec
from shared.foundation import errors

router = APIRouter(prefix="/v1/sessions/{session_id:session}/collections", tags=["session state"])
Label = Annotated[str, Path(examples=["plans"])]


class CollectionBody(Body):
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


class ListingAnswer(Body):
    """A collection as it is listed; the version is also its entity tag."""

    label: str
    type: str
    index: bool
    size_bytes: int
    version: int
    updated_at: str


class CollectionAnswer(ListingAnswer):
    """A collection as it stood when it was read."""

    value: Any


class VectorBody(Body):
    """A vector whose like are wanted."""

    model_config = example({"vector": [0.1, 0.9, 0.0], "limit": 5})

    vector: Annotated[list[Annotated[float, Strict()]], Field(min_length=1, max_length=65_536)]
    limit: Annotated[Count, Field(ge=1, le=100)] = 10


@router.get("")
async def list_collections(opened: Opened, caller: Reader, session_id: SessionId) -> Json:
    """List collections by label, without their values."""
    async with open_state(opened, caller, session_id) as store:
        listed = await store.list_collections()
    return Json({"results": [listing.shown() for listing in listed], "next_cursor": None})


@router.post("/{label:path}/search")
async def search_collection(
    opened: Opened, caller: Reader, session_id: SessionId, label: Label, body: VectorBody
) -> Json:
    """Find the rows of a vec that are most like a vector, by cosine; the vec must be put as an index."""
    async with open_state(opened, caller, session_id) as store:
        return Json({"results": await nearest(store, label, body.vector, body.limit)})


@router.put("/{label:path}", response_model=ListingAnswer)
async def put_collection(
    opened: Opened,
    caller: Writer,
    session_id: SessionId,
    label: Label,
    body: CollectionBody,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> Json:
    """Write a collection as a whole, on condition if the request names one."""
    collection, expected = body.collection(), etag.expected(if_match, if_none_match)
    async with open_state(opened, caller, session_id, write=True) as store:
        listing = await store.put_collection(label, collection, index=body.index, expected=expected)
    return put(listing)


def put(listing: Listing) -> Json:
    """Answer what was put, with its entity tag."""
    return Json(listing.shown(), headers={"etag": etag.tag(listing.version)})


@router.get("/{label:path}", response_model=CollectionAnswer)
async def get_collection(
    opened: Opened, caller: Reader, session_id: SessionId, label: Label, if_none_match: IfNoneMatch = None
) -> Response:
    """Read a collection, with its version as an entity tag."""
    async with open_state(opened, caller, session_id) as store:
        snapshot = await found(store, label)
    return told(snapshot, if_none_match)


async def found(store: Store, label: str) -> Snapshot:
    """Return a collection; raise errors.NotFound if there is none."""
    snapshot = await store.get_collection(label)
    if snapshot is None:
        raise errors.NotFound(f"collection not found: {label}")
    return snapshot


def told(snapshot: Snapshot, if_none_match: str | None) -> Response:
    """Answer a snapshot, or that the reader has it."""
    version = snapshot.listing.version
    headers = {"etag": etag.tag(version)}
    if etag.known(if_none_match, version):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Json(snapshot.shown(), headers=headers)


@router.delete("/{label:path}")
async def remove_collection(
    opened: Opened, caller: Writer, session_id: SessionId, label: Label, if_match: IfMatch = None
) -> Json:
    """Remove a collection, on condition if the request names one; none there is a no-op that says so."""
    expected = etag.expected(if_match, None)
    async with open_state(opened, caller, session_id, write=True) as store:
        return Json({"label": label, "deleted": await store.remove_collection(label, expected=expected)})
