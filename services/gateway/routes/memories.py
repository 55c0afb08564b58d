"""Long-term memory over HTTP."""

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query

from services.gateway import errors as problems
from services.gateway import responses
from services.gateway.api_model import parse
from services.gateway.dependencies import (
    Cursor,
    Limit,
    Once,
    Opened,
    Reader,
    ReadingScope,
    Writer,
)
from services.gateway.responses import Json
from services.gateway.routes.memory_models import BatchBody, ChangeBody, FoundBody, MemoryBody, SearchBody
from shared.foundation import errors
from shared.foundation.stages import State
from shared.lifecycle import delete_memory as delete_memory_everywhere
from shared.memory.longterm import history, save, scope_queries, update
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm import search as memory_search
from shared.memory.longterm.filters import Criteria
from shared.memory.longterm.memory import Entry
from shared.memory.longterm.search import Ranking

router = APIRouter(prefix="/v1/memories", tags=["memories"])


@router.post("", status_code=HTTPStatus.CREATED, response_model=Entry)
async def save_memory(opened: Opened, caller: Writer, body: MemoryBody, once: Once) -> Json:
    """Keep a memory: durable, and found by keyword, when this answers."""
    scope = caller.scope(body.agent_id, body.user_id)
    return Json(await save.save(opened, scope, caller.key_id, body.draft(), once), HTTPStatus.CREATED)


@router.post("/batch", status_code=HTTPStatus.CREATED)
async def save_memories(opened: Opened, caller: Writer, body: BatchBody, once: Once) -> Json:
    """Keep up to 1000 memories; each result is the entry, or the problem with that item."""
    offers: list[save.Offer] = []
    refused: dict[int, dict[str, Any]] = {}
    for place, item in enumerate(body.memories):
        try:
            memory = parse(MemoryBody, item)
            offers.append((caller.scope(memory.agent_id, memory.user_id), memory.draft()))
        except errors.LociError as error:
            refused[place] = problems.of_error(error)
    results = await save.save_all(opened, caller.tenant, caller.key_id, offers, once, refused)
    return Json({"results": results}, HTTPStatus.CREATED if offers else HTTPStatus.UNPROCESSABLE_ENTITY)


@router.get("")
async def list_memories(  # noqa: PLR0913
    opened: Opened,
    scope: ReadingScope,
    category: str | None = None,
    tag: Annotated[list[str] | None, Query()] = None,
    created_after: datetime | None = None,
    created_before: datetime | None = None,
    state: State | None = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Json:
    """List memories, the last seen first."""
    criteria = Criteria(
        category=category,
        tags=tuple(tag or ()),
        created_after=created_after,
        created_before=created_before,
        state=state,
    )
    rows = await memory_search.newest(opened, scope, criteria, limit + 1, responses.place_of(cursor))
    return responses.page(
        rows, limit, lambda row: row.model_dump(mode="json"), lambda row: (row.last_seen_at, row.id)
    )


@router.post("/search", response_model=FoundBody)
async def search_memories(opened: Opened, caller: Reader, body: SearchBody) -> Json:
    """Find memories by what they say."""
    scope, criteria = caller.scope(body.agent_id, body.user_id), body.criteria()
    if not body.query or not body.query.strip():
        rows = await memory_search.newest(opened, scope, criteria, body.limit)
        results = [row.model_dump(mode="json") | {"score": 0.0} for row in rows]
        return Json({"results": results, "stages": ["newest"], "degraded": []})
    wanted = Ranking(body.limit, body.strategy, body.min_similarity)
    found = await memory_search.search(opened, scope, body.query, criteria, wanted)
    results = [
        one.entry.model_dump(mode="json")
        | {"score": one.scored.score}
        | ({"scores": one.scored.scores} if body.explain else {})
        for one in found.results
    ]
    return Json({"results": results, "stages": found.stages, "degraded": found.degraded})


@router.get("/categories")
async def list_categories(opened: Opened, scope: ReadingScope) -> Json:
    """List categories with counts; `total` counts what lies beneath too."""
    return Json({"results": await scope_queries.categories(opened, scope), "next_cursor": None})


@router.get("/tags")
async def list_tags(opened: Opened, scope: ReadingScope) -> Json:
    """List tags with counts."""
    return Json({"results": await scope_queries.tags(opened, scope), "next_cursor": None})


@router.get("/{memory_id}", response_model=Entry)
async def get_memory(opened: Opened, caller: Reader, memory_id: str) -> Json:
    """Read one memory, archived or not."""
    return Json((await _found(opened, caller, memory_id)).model_dump(mode="json"))


@router.get("/{memory_id}/history")
async def get_history(opened: Opened, caller: Reader, memory_id: str) -> Json:
    """Read what happened to a memory, oldest first."""
    await _found(opened, caller, memory_id)
    async with opened.postgres.tenant(caller.tenant) as connection:
        notes = await history.of_entry(connection, caller.tenant, memory_id)
    return Json({"results": notes, "next_cursor": None})


async def _found(opened: Opened, caller: Reader, memory_id: str) -> Entry:
    async with opened.postgres.tenant(caller.tenant) as connection:
        entry = await memory_queries.get(connection, caller, memory_id)
    if entry is None:
        raise errors.NotFound(f"no memory '{memory_id}'")
    return entry


@router.patch("/{memory_id}", response_model=Entry)
async def change_memory(opened: Opened, caller: Writer, memory_id: str, body: ChangeBody) -> Json:
    """Change fields of a memory."""
    changed = await update.update(opened, caller, memory_id, body.changes())
    return Json(changed.model_dump(mode="json"))


@router.delete("/{memory_id}")
async def delete_memory(opened: Opened, caller: Writer, memory_id: str) -> Json:
    """Forget a memory for good and say what it was; an unknown id is a no-op that says so."""
    gone = await delete_memory_everywhere.forget(opened, caller, memory_id)
    return Json({"id": memory_id, "deleted": gone is not None, "content": gone.content if gone else None})
