"""Long-term memory over HTTP."""

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from services.gateway import errors as problems
from services.gateway import responses
from services.gateway.api_model import Body, Count, Flag, Fraction, Items, example, parse
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
from shared.foundation import errors
from shared.foundation.stages import State
from shared.lifecycle import delete_memory as delete_memory_everywhere
from shared.memory.longterm import history, save, scope_queries, update
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm import search as memory_search
from shared.memory.longterm.filters import Criteria
from shared.memory.longterm.memory import Draft, Entry, Source
from shared.memory.longterm.search import Ranking
from shared.search.ranking import rank as ranking

router = APIRouter(prefix="/v1/memories", tags=["memories"])
_EXAMPLE = {
    "content": "Ada prefers trains to planes for trips under six hours.",
    "category": "user-preferences/travel",
    "tags": ["travel"],
    "user_id": "ada",
}


class SourceBody(Body):
    """Where a fact was said."""

    session_id: str
    seq: Annotated[Count, Field(ge=0, le=2**31 - 1)] | None = None
    speaker: str | None = None
    role: str | None = None


class MemoryBody(Body):
    """A memory to keep."""

    model_config = example(_EXAMPLE)

    content: str
    category: str | None = None
    tags: list[str] = []
    metadata: dict[str, str] = {}
    importance: Fraction = 0.5
    enrich: Flag = True
    occurred_at: datetime | None = None
    source: SourceBody | None = None
    agent_id: str | None = None
    user_id: str | None = None

    def draft(self) -> Draft:
        """Return what is to be saved, checked."""
        source = None if self.source is None else Source(**self.source.model_dump())
        fields = self.model_dump(exclude={"agent_id", "user_id", "source", "tags"})
        return Draft(**fields, tags=tuple(self.tags), source=source).checked()


class BatchBody(Items):
    """Memories to keep; each stands on its own."""

    model_config = example({"memories": [_EXAMPLE]})

    memories: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=1000)]


class ChangeBody(Body):
    """Fields to change; what is not named stays."""

    model_config = example({"importance": 0.9})

    content: str | None = None
    category: str | None = None
    tags: list[str] | None = None
    metadata: dict[str, str] | None = None
    importance: Fraction | None = None
    occurred_at: datetime | None = None

    def changes(self) -> dict[str, Any]:
        """Return the named fields; only category and occurred_at may be set to nothing."""
        named = {name: getattr(self, name) for name in self.model_fields_set}
        for name, value in named.items():
            if value is None and name not in {"category", "occurred_at"}:
                raise errors.Invalid(name, "must not be null")
        return named


class SearchBody(Body):
    """A search; without a query the newest come first."""

    model_config = example({"query": "how does Ada like to travel?", "user_id": "ada"})

    query: Annotated[str | None, Field(max_length=16_000)] = None
    category: str | None = None
    tags: list[str] = []
    created_after: datetime | None = None
    created_before: datetime | None = None
    occurred_after: datetime | None = None
    occurred_before: datetime | None = None
    metadata: dict[str, str] = {}
    state: State | None = None
    limit: Annotated[Count, Field(ge=1, le=100)] = 20
    min_similarity: Annotated[float | None, Field(ge=-1, le=1)] = None
    strategy: str = ranking.DEFAULT_STRATEGY
    explain: Flag = False
    agent_id: str | None = None
    user_id: str | None = None

    def criteria(self) -> Criteria:
        """Return the filters."""
        names = ("category", "created_after", "created_before", "occurred_after", "occurred_before")
        ranges = {name: getattr(self, name) for name in names}
        return Criteria(**ranges, tags=tuple(self.tags), metadata=self.metadata, state=self.state)


class FoundBody(Body):
    """Search results."""

    results: list[dict[str, Any]]
    stages: list[str]
    degraded: list[str]


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
