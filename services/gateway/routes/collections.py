"""Labelled collections of a session. A client reads one, changes it and writes it back if nobody else has."""

from starlette.responses import Response

from services.gateway import etag
from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import ReadCaller, ResourcesDep, WriteCaller
from services.gateway.etag import IfMatch, IfNoneMatch
from services.gateway.paths import SessionId
from services.gateway.response_models import Page
from services.gateway.responses import JsonResponse
from services.gateway.state_collections import (
    CollectionBody,
    CollectionInfoResponse,
    CollectionResponse,
    Label,
    VectorBody,
    info_response,
    require_collection,
    snapshot_response,
)
from services.gateway.state_response_models import DeletedLabel, SimilarRows
from shared.conversation.sessions.state import open_state
from shared.conversation.state.vector_search import nearest

router = authenticated_router(prefix="/v1/sessions/{session_id:session}/collections", tags=["session state"])


@router.get("", response_model=Page[CollectionInfoResponse])
async def list_collections(
    resources: ResourcesDep, caller: ReadCaller, session_id: SessionId
) -> JsonResponse:
    """List collections by label, without their values."""
    async with open_state(resources, caller, session_id) as store:
        collections = await store.list_collections()
    return JsonResponse({"results": [info.to_json() for info in collections], "next_cursor": None})


@router.post("/{label:path}/search", response_model=SimilarRows)
async def search_collection(
    resources: ResourcesDep, caller: ReadCaller, session_id: SessionId, label: Label, body: VectorBody
) -> JsonResponse:
    """Find the rows of a vec most similar to a vector, by cosine. The vec must be stored with `index`."""
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
) -> Response:
    """Write a whole collection, if the condition in the headers is met."""
    collection, expected = body.collection(), etag.expected_versions(if_match, if_none_match)
    async with open_state(resources, caller, session_id, write=True) as store:
        info = await store.put_collection(label, collection, index=body.index, expected=expected)
    return info_response(info)


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


@router.delete("/{label:path}", response_model=DeletedLabel)
async def remove_collection(
    resources: ResourcesDep,
    caller: WriteCaller,
    session_id: SessionId,
    label: Label,
    if_match: IfMatch = None,
) -> JsonResponse:
    """Delete a collection, if the condition in the headers is met. If there is none, `deleted` is false."""
    expected = etag.expected_versions(if_match, None)
    async with open_state(resources, caller, session_id, write=True) as store:
        return JsonResponse(
            {"label": label, "deleted": await store.remove_collection(label, expected=expected)}
        )
