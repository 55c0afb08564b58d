"""Long-term memories: save, list, search, read, update and delete them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query

from services.gateway import errors as gateway_errors
from services.gateway import responses
from services.gateway.api_model import parse
from services.gateway.dependencies import (
    Cursor,
    IdempotencyKeyDep,
    Limit,
    ReadCaller,
    ReadScope,
    ResourcesDep,
    WriteCaller,
)
from services.gateway.memory_models import (
    BatchBody,
    MemoryBody,
    MemoryPatch,
    Metadata,
    SearchBody,
    parse_metadata,
)
from services.gateway.responses import JsonResponse
from services.gateway.search_response import SearchResponse, search_response
from shared.foundation import errors
from shared.foundation.stages import MemoryState
from shared.lifecycle import delete_memory as delete_memory_everywhere
from shared.memory.longterm import read, save, update
from shared.memory.longterm import search as memory_search
from shared.memory.longterm.filters import MemoryFilters
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.search import SearchOptions
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area

router = APIRouter(prefix="/v1/memories", tags=["memories"])


@router.post("", status_code=HTTPStatus.CREATED, response_model=Memory)
async def save_memory(
    resources: ResourcesDep, caller: WriteCaller, body: MemoryBody, idempotency_key: IdempotencyKeyDep
) -> JsonResponse:
    """Save a memory. It is durable and keyword search finds it before the response is sent."""
    scope = rights.scope(caller, Area.MEMORIES, Action.WRITE, body.agent_id, body.user_id)
    return JsonResponse(
        await save.save(resources, scope, caller.key_id, body.draft(), idempotency_key), HTTPStatus.CREATED
    )


@router.post("/batch", status_code=HTTPStatus.CREATED)
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
        resources, caller.tenant, caller.key_id, items, idempotency_key, problems_by_position
    )
    status = HTTPStatus.CREATED if items else HTTPStatus.UNPROCESSABLE_ENTITY
    return JsonResponse({"results": results}, status)


@router.get("")
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


@router.post("/search", response_model=SearchResponse)
async def search_memories(resources: ResourcesDep, caller: ReadCaller, body: SearchBody) -> JsonResponse:
    """Search the contents of memories. Without a query, return the most recently seen."""
    scope = rights.scope(caller, Area.MEMORIES, Action.READ, body.agent_id, body.user_id)
    filters, after = body.filters(), responses.decode_cursor(body.cursor)
    if not body.query or not body.query.strip():
        rows = await memory_search.list_newest(resources, scope, filters, body.limit + 1, after)
        return _page(rows, body.limit, {"score": 0.0}, stages=["newest"], degraded=[])
    if after is not None:
        raise errors.Invalid("cursor", "continues a search without a query only")
    options = SearchOptions(body.limit, body.strategy, body.min_similarity)
    hits = await memory_search.search(resources, scope, body.query, filters, options)
    pairs = [(hit.memory, hit.scored) for hit in hits.results]
    return search_response(pairs, hits.stages, hits.degraded, explain=body.explain)


@router.get("/categories")
async def list_categories(resources: ResourcesDep, scope: ReadScope) -> JsonResponse:
    """List categories with counts. `total` includes the categories beneath."""
    return JsonResponse({"results": await read.list_categories(resources, scope), "next_cursor": None})


@router.get("/tags")
async def list_tags(resources: ResourcesDep, scope: ReadScope) -> JsonResponse:
    """List tags with counts."""
    return JsonResponse({"results": await read.list_tags(resources, scope), "next_cursor": None})


@router.get("/{memory_id}", response_model=Memory)
async def get_memory(resources: ResourcesDep, caller: ReadCaller, memory_id: str) -> JsonResponse:
    """Read one memory, archived or not."""
    return JsonResponse((await read.read_memory(resources, caller, memory_id)).model_dump(mode="json"))


@router.get("/{memory_id}/history")
async def get_history(resources: ResourcesDep, caller: ReadCaller, memory_id: str) -> JsonResponse:
    """Read what happened to a memory, oldest first."""
    changes = await read.read_history(resources, caller, memory_id)
    return JsonResponse({"results": changes, "next_cursor": None})


@router.patch("/{memory_id}", response_model=Memory)
async def change_memory(
    resources: ResourcesDep, caller: WriteCaller, memory_id: str, body: MemoryPatch
) -> JsonResponse:
    """Change fields of a memory. What it holds already is no change."""
    memory = await update.update(resources, caller, memory_id, body.changes(), body.checked_reason())
    return JsonResponse(memory.model_dump(mode="json"))


@router.delete("/{memory_id}")
async def delete_memory(resources: ResourcesDep, caller: WriteCaller, memory_id: str) -> JsonResponse:
    """Delete every copy of a memory and return its content. If there is none, `deleted` is false."""
    memory = await delete_memory_everywhere.delete_memory(resources, caller, memory_id)
    content = None if memory is None else memory.content
    return JsonResponse({"id": memory_id, "deleted": memory is not None, "content": content})
