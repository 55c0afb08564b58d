"""Long-term memories: save, list, search, read, update and delete them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Query

from services.gateway import errors as gateway_errors
from services.gateway import etag, responses, search_cursor
from services.gateway.api_model import parse
from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import (
    Cursor,
    IdempotencyKeyDep,
    Limit,
    ReadCaller,
    ReadScope,
    ResourcesDep,
    WriteCaller,
)
from services.gateway.etag import IfMatch
from services.gateway.filter_models import FilterText, Validity, parse_filter_text
from services.gateway.memory_models import (
    BatchBody,
    FilterDeletion,
    MemoryBody,
    MemoryPatch,
    Metadata,
    Reason,
    SearchBody,
    check_reason,
    parse_metadata,
)
from services.gateway.memory_response import memory_response, versioned_response
from services.gateway.memory_response_models import (
    CategoryCount,
    DeletedMemory,
    MemoryChange,
    SavedMemories,
    TagCount,
)
from services.gateway.response_models import ErasureReceipt, Page
from services.gateway.responses import JsonResponse
from services.gateway.search_response import FoundMemories, found_memories_response
from services.gateway.waiting import WAITS
from shared.foundation import errors, validation
from shared.foundation.stages import MemoryState
from shared.lifecycle import delete_memory as delete_memory_everywhere
from shared.lifecycle import edit_memory, erasure
from shared.lifecycle.matching_rows import Matching
from shared.memory.longterm import read, save
from shared.memory.longterm import search as memory_search
from shared.memory.longterm.filters import MemoryFilters
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.search import SearchOptions
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area

router = authenticated_router(prefix="/v1/memories", tags=["memories"])


@router.post("", status_code=HTTPStatus.CREATED, response_model=Memory, dependencies=[WAITS])
async def save_memory(
    resources: ResourcesDep, caller: WriteCaller, body: MemoryBody, idempotency_key: IdempotencyKeyDep
) -> JsonResponse:
    """Save a memory. It is durable and keyword search finds it before the response is sent."""
    scope = rights.scope(caller, Area.MEMORIES, Action.WRITE, body.agent_id, body.user_id)
    memory = await save.save(resources, scope, caller, body.draft(), idempotency_key)
    return versioned_response(memory, HTTPStatus.CREATED)


@router.post("/batch", status_code=HTTPStatus.CREATED, dependencies=[WAITS], response_model=SavedMemories)
async def save_memories(
    resources: ResourcesDep, caller: WriteCaller, body: BatchBody, idempotency_key: IdempotencyKeyDep
) -> JsonResponse:
    """Save up to 1000 memories. Each result is the memory, or the problem with that item."""
    items: list[save.SaveItem] = []
    problems_by_position: dict[int, dict[str, Any]] = {}
    for position, item in enumerate(body.memories):
        try:
            memory = parse(MemoryBody, item)
            scope = rights.scope(caller, Area.MEMORIES, Action.WRITE, memory.agent_id, memory.user_id)
            items.append((scope, memory.draft()))
        except errors.LociError as error:
            problems_by_position[position] = gateway_errors.problem_from_error(error)
    results = await save.save_all(
        resources,
        caller,
        items,
        idempotency_key,
        problems_by_position,
        problem_of=gateway_errors.problem_from_error,
    )
    is_any_saved = any("id" in result for result in results)
    status = HTTPStatus.CREATED if is_any_saved else HTTPStatus.UNPROCESSABLE_ENTITY
    return JsonResponse({"results": results}, status)


@router.get("", response_model=Page[Memory])
async def list_memories(  # noqa: PLR0913
    resources: ResourcesDep,
    scope: ReadScope,
    category: str | None = None,
    tag: Annotated[list[str] | None, Query()] = None,
    created_after: datetime | None = None,
    created_before: datetime | None = None,
    occurred_after: datetime | None = None,
    occurred_before: datetime | None = None,
    metadata: Metadata = None,
    state: MemoryState | None = None,
    filter: FilterText = None,  # noqa: A002 (the name of the parameter)
    as_of: datetime | None = None,
    validity: Validity | None = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> JsonResponse:
    """List memories, the most recently seen first."""
    filters = MemoryFilters(
        category=category,
        tags=tuple(tag or ()),
        created_after=created_after,
        created_before=created_before,
        occurred_after=occurred_after,
        occurred_before=occurred_before,
        metadata=parse_metadata(metadata or ()),
        state=state,
        expression=parse_filter_text(filter),
        as_of=as_of,
        any_validity=validity is not None,
    )
    rows = await memory_search.list_newest(
        resources, scope, filters, limit + 1, responses.decode_cursor(cursor)
    )
    return _page(rows, limit)


def _page(
    rows: Sequence[Memory], limit: int, fields: Mapping[str, Any] | None = None, **more: Any
) -> JsonResponse:
    """Return a page of memories, each with the given fields in addition."""
    return responses.page_response(
        rows,
        limit,
        lambda row: row.model_dump(mode="json") | dict(fields or {}),
        lambda row: (row.last_seen_at, row.id),
        **more,
    )


@router.post("/search", response_model=FoundMemories)
async def search_memories(resources: ResourcesDep, caller: ReadCaller, body: SearchBody) -> JsonResponse:
    """Search the contents of memories. Without a query, return the most recently seen.

    The pages of a search with a query end after 1000 results.
    """
    scope = rights.scope(caller, Area.MEMORIES, Action.READ, body.agent_id, body.user_id)
    filters = body.filters()
    if body.query is None or validation.is_blank(body.query):
        after = responses.decode_cursor(body.cursor)
        rows = await memory_search.list_newest(resources, scope, filters, body.limit + 1, after)
        return _page(rows, body.limit, {"score": 0.0, "text_of": "record"}, stages=["newest"], degraded=[])
    # One more than is shown tells whether there is another page.
    options = SearchOptions(body.limit + 1, body.strategy, body.min_similarity)
    digest = search_cursor.digest(scope, body.query, filters, options)
    shown_ids = search_cursor.decode(body.cursor, digest)
    options = replace(options, shown=frozenset(shown_ids))
    hits = await memory_search.search(resources, scope, body.query, filters, options)
    page = hits.results[: body.limit]
    shown_ids += [hit.memory.id for hit in page]
    cursor = search_cursor.encode(digest, shown_ids) if len(hits.results) > body.limit else None
    return found_memories_response(page, hits.stages, hits.degraded, explain=body.explain, next_cursor=cursor)


@router.post("/delete", response_model=ErasureReceipt)
async def delete_matching_memories(
    resources: ResourcesDep, caller: WriteCaller, body: FilterDeletion
) -> JsonResponse:
    """Delete every copy of the memories of one scope that match a filter, and return the receipt.

    It is as that of an erasure, and read at `/v1/erasures/{id}`. The status is 202 if there are so many
    that they are deleted later.
    """
    scope = rights.scope(caller, Area.MEMORIES, Action.WRITE, body.agent_id, body.user_id)
    matching = Matching(scope.agent_id, scope.user_id, body.filter)
    delete = erasure.count_matching if body.dry_run else erasure.delete_matching
    receipt = await delete(resources, scope, matching)
    return responses.receipt_response(receipt | {"dry_run": body.dry_run})


@router.get("/categories", response_model=Page[CategoryCount])
async def list_categories(resources: ResourcesDep, scope: ReadScope) -> JsonResponse:
    """List categories with counts. `total` includes the categories beneath."""
    return JsonResponse({"results": await read.list_categories(resources, scope), "next_cursor": None})


@router.get("/tags", response_model=Page[TagCount])
async def list_tags(resources: ResourcesDep, scope: ReadScope) -> JsonResponse:
    """List tags with counts."""
    return JsonResponse({"results": await read.list_tags(resources, scope), "next_cursor": None})


@router.get("/{memory_id}", response_model=Memory)
async def get_memory(resources: ResourcesDep, caller: ReadCaller, memory_id: str) -> JsonResponse:
    """Read one memory, archived or not, with its version as an entity tag."""
    return memory_response(await read.read_memory(resources, caller, memory_id))


@router.get("/{memory_id}/history", response_model=Page[MemoryChange])
async def get_history(resources: ResourcesDep, caller: ReadCaller, memory_id: str) -> JsonResponse:
    """Read what happened to a memory, oldest first."""
    changes = await read.read_history(resources, caller, memory_id)
    return JsonResponse({"results": changes, "next_cursor": None})


@router.patch("/{memory_id}", response_model=Memory, dependencies=[WAITS])
async def change_memory(
    resources: ResourcesDep, caller: WriteCaller, memory_id: str, body: MemoryPatch, if_match: IfMatch = None
) -> JsonResponse:
    """Change fields of a memory, if the headers' condition is met. What it holds already is no change."""
    changes, reason = body.changes(), body.checked_reason()
    expected = etag.expected_versions(if_match, None)
    return memory_response(await edit_memory.update(resources, caller, memory_id, changes, reason, expected))


@router.delete("/{memory_id}", response_model=DeletedMemory)
async def delete_memory(
    resources: ResourcesDep,
    caller: WriteCaller,
    memory_id: str,
    reason: Reason = None,
    if_match: IfMatch = None,
) -> JsonResponse:
    """Delete every copy of a memory and return its content. If there is none, `deleted` is false."""
    expected = etag.expected_versions(if_match, None)
    memory = await delete_memory_everywhere.delete_memory(
        resources, caller, memory_id, check_reason(reason), expected
    )
    content = None if memory is None else memory.content
    return JsonResponse({"id": memory_id, "deleted": memory is not None, "content": content})
