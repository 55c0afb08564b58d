"""Working memory: short-lived entries that sessions share. Keys are full paths and may contain `/`."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from services.gateway.api_model import ApiModel, Count, Seconds, example
from services.gateway.dependencies import ResourcesDep, WorkingReadCaller, WorkingWriteCaller
from services.gateway.responses import JsonResponse
from shared.memory.working import access, entries, keys, render
from shared.memory.working import search as working_search
from shared.memory.working.search import WorkingFilters
from shared.memory.working.working_entry import WorkingEntry

router = APIRouter(prefix="/v1/working", tags=["working memory"])
Namespace = Annotated[
    str | None,
    Query(
        description="The namespace in which this request's relative keys are resolved.",
        examples=["session/abc"],
    ),
]


class WorkingEntryBody(ApiModel):
    """A working-memory entry to write."""

    model_config = ApiModel.model_config | {
        "json_schema_extra": {
            "examples": [{"value": "3 unread mails", "ttl_seconds": 600, "tags": ["inbox"]}]
        }
    }

    value: str
    ttl_seconds: Seconds | None = None
    category: str | None = None
    tags: list[str] = []


class WorkingSearchBody(ApiModel):
    """A search over working memory. Without a query, the newest entries come first."""

    model_config = example({"query": "unread mails", "prefix": "session/abc"})

    query: Annotated[str | None, Field(max_length=16_000)] = None
    prefix: str = ""
    category: str | None = None
    tags: list[str] = []
    limit: Annotated[Count, Field(ge=1, le=100)] = 20


@router.get("")
async def list_entries(
    resources: ResourcesDep, caller: WorkingReadCaller, prefix: str = "", namespace: Namespace = None
) -> JsonResponse:
    """List entries under a prefix, without their values."""
    path = keys.resolve_prefix(prefix, access.bound_namespace(caller, namespace))
    infos = await entries.list_entries(resources, caller, path)
    return JsonResponse({"results": [info.model_dump(mode="json") for info in infos], "next_cursor": None})


@router.delete("")
async def clear_entries(
    resources: ResourcesDep, caller: WorkingWriteCaller, prefix: str, namespace: Namespace = None
) -> JsonResponse:
    """Delete all entries at and beneath a prefix."""
    path = keys.resolve_prefix(prefix, access.bound_namespace(caller, namespace), write=True)
    return JsonResponse({"prefix": path, "deleted": await entries.clear(resources, caller, path)})


@router.post("/search")
async def search_entries(
    resources: ResourcesDep, caller: WorkingReadCaller, body: WorkingSearchBody, namespace: Namespace = None
) -> JsonResponse:
    """Search entries by words, tags and category. Values are shortened."""
    prefix = keys.resolve_prefix(body.prefix, access.bound_namespace(caller, namespace))
    filters = WorkingFilters(prefix, body.category, tuple(body.tags))
    hits = await working_search.search(resources, caller, body.query, filters, body.limit)
    results = [_to_preview(entry) | {"score": score} for entry, score in hits.results]
    return JsonResponse({"results": results, "stages": hits.stages, "degraded": hits.degraded})


def _to_preview(entry: WorkingEntry) -> dict[str, Any]:
    return entry.model_dump(mode="json") | {"value": render.preview(entry.value)}


@router.put("/{key:path}", response_model=WorkingEntry)
async def put_entry(
    resources: ResourcesDep,
    caller: WorkingWriteCaller,
    key: str,
    body: WorkingEntryBody,
    namespace: Namespace = None,
) -> JsonResponse:
    """Write an entry. Overwriting one restarts its time to live and does not count against the limit."""
    path = keys.resolve(key, access.bound_namespace(caller, namespace), write=True)
    fields: dict[str, Any] = {"ttl_seconds": body.ttl_seconds, "category": body.category, "tags": body.tags}
    entry = await entries.put(resources, caller, path, body.value, **fields)
    return JsonResponse(entry.model_dump(mode="json"))


@router.get("/{key:path}", response_model=WorkingEntry)
async def get_entry(
    resources: ResourcesDep,
    caller: WorkingReadCaller,
    key: str,
    namespace: Namespace = None,
    full: Annotated[bool, Query(description="Return the whole of a large value, not its outline.")] = False,  # noqa: FBT002
) -> JsonResponse:
    """Read an entry, the outline of a large one, or one chunk of it."""
    path = keys.resolve(key, access.bound_namespace(caller, namespace))
    entry = await entries.get(resources, caller, path, full=full)
    return JsonResponse(entry.model_dump(mode="json"))


@router.delete("/{key:path}")
async def delete_entry(
    resources: ResourcesDep, caller: WorkingWriteCaller, key: str, namespace: Namespace = None
) -> JsonResponse:
    """Delete an entry with its chunks. If there is none, nothing changes and `deleted` is false."""
    path = keys.resolve(key, access.bound_namespace(caller, namespace), write=True)
    return JsonResponse({"key": path, "deleted": await entries.delete(resources, caller, path)})
