"""Working memory: short-lived entries that sessions share. Keys are full paths and may contain `/`."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from services.gateway import etag
from services.gateway.api_model import ApiModel, Count, RequestedTrust, Seconds, example
from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import (
    IdempotencyKeyDep,
    ResourcesDep,
    WorkingReadCaller,
    WorkingWriteCaller,
)
from services.gateway.etag import Condition, IfMatchOrAny, KnownVersion
from services.gateway.memory_response_models import ClearedEntries, FoundEntries
from services.gateway.response_models import Page
from services.gateway.responses import JsonResponse
from services.gateway.waiting import WAITS
from shared.memory.working import access, entries, keys, render
from shared.memory.working import search as working_search
from shared.memory.working.search import WorkingFilters
from shared.memory.working.working_entry import WorkingEntry, WorkingEntryInfo

router = authenticated_router(prefix="/v1/working", tags=["working memory"])
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
    trust: RequestedTrust = None


class WorkingAppendBody(ApiModel):
    """A text to append to the value of an entry. Without `ttl_seconds` its time to live goes on."""

    model_config = example({"append": "\n- called Ada back"})

    append: str
    ttl_seconds: Seconds | None = None
    trust: RequestedTrust = None


class DeletedEntryResponse(ApiModel):
    """Whether there was a live entry to delete."""

    key: str
    deleted: bool


class WorkingSearchBody(ApiModel):
    """A search over working memory. Without a query, the newest entries come first."""

    model_config = example({"query": "unread mails", "prefix": "session/abc"})

    query: Annotated[str | None, Field(max_length=16_000)] = None
    prefix: str = ""
    category: str | None = None
    tags: list[str] = []
    limit: Annotated[Count, Field(ge=1, le=100)] = 20


@router.get("", response_model=Page[WorkingEntryInfo])
async def list_entries(
    resources: ResourcesDep, caller: WorkingReadCaller, prefix: str = "", namespace: Namespace = None
) -> JsonResponse:
    """List entries under a prefix, without their values."""
    path = keys.resolve_prefix(prefix, access.bound_namespace(caller, namespace))
    infos = await entries.list_entries(resources, caller, path)
    return JsonResponse({"results": [info.model_dump(mode="json") for info in infos], "next_cursor": None})


@router.delete("", response_model=ClearedEntries)
async def clear_entries(
    resources: ResourcesDep, caller: WorkingWriteCaller, prefix: str, namespace: Namespace = None
) -> JsonResponse:
    """Delete all entries at and beneath a prefix."""
    path = keys.resolve_prefix(prefix, access.bound_namespace(caller, namespace), write=True)
    return JsonResponse({"prefix": path, "deleted": await entries.clear(resources, caller, path)})


@router.post("/search", response_model=FoundEntries)
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


@router.put("/{key:path}", response_model=WorkingEntry, dependencies=[WAITS])
async def put_entry(
    resources: ResourcesDep,
    caller: WorkingWriteCaller,
    key: str,
    body: WorkingEntryBody,
    expected: Condition,
    namespace: Namespace = None,
) -> Response:
    """Write an entry, if the condition in the headers is met.

    Overwriting one restarts its time to live and does not count against the limit.
    """
    path = keys.resolve(key, access.bound_namespace(caller, namespace), write=True)
    fields: dict[str, Any] = {"ttl_seconds": body.ttl_seconds, "category": body.category, "tags": body.tags}
    fields |= {"trust": body.trust}
    entry = await entries.put(resources, caller, path, body.value, expected=expected, **fields)
    return etag.versioned_response(entry.model_dump(mode="json"))


@router.patch("/{key:path}", response_model=WorkingEntry, dependencies=[WAITS])
async def append_to_entry(
    resources: ResourcesDep,
    caller: WorkingWriteCaller,
    key: str,
    body: WorkingAppendBody,
    idempotency_key: IdempotencyKeyDep,
    if_match: IfMatchOrAny = None,
    namespace: Namespace = None,
) -> Response:
    """Append a text to a live entry, whoever else appends at the same time, and return the entry.

    A repetition with the same Idempotency-Key appends nothing and returns the entry as it is by then.
    """
    path = keys.resolve(key, access.bound_namespace(caller, namespace), write=True)
    expected = etag.expected_versions(if_match, None)
    fields: dict[str, Any] = {"ttl_seconds": body.ttl_seconds, "expected": expected, "key": idempotency_key}
    fields |= {"trust": body.trust}
    entry = await entries.append(resources, caller, path, body.append, **fields)
    return etag.versioned_response(entry.model_dump(mode="json"))


@router.get("/{key:path}", response_model=WorkingEntry)
async def get_entry(
    resources: ResourcesDep,
    caller: WorkingReadCaller,
    key: str,
    namespace: Namespace = None,
    full: Annotated[bool, Query(description="Return the whole of a large value, not its outline.")] = False,  # noqa: FBT002
    if_none_match: KnownVersion = None,
) -> Response:
    """Read an entry, the outline of a large one, or one chunk of it, with the version as entity tag."""
    path = keys.resolve(key, access.bound_namespace(caller, namespace))
    entry = await entries.get(resources, caller, path, full=full)
    return etag.versioned_response(entry.model_dump(mode="json"), if_none_match)


@router.delete("/{key:path}", response_model=DeletedEntryResponse)
async def delete_entry(
    resources: ResourcesDep,
    caller: WorkingWriteCaller,
    key: str,
    expected: Condition,
    namespace: Namespace = None,
) -> JsonResponse:
    """Delete an entry with its chunks, if the condition in the headers is met.

    If there is none, nothing changes and `deleted` is false.
    """
    path = keys.resolve(key, access.bound_namespace(caller, namespace), write=True)
    is_deleted = await entries.delete(resources, caller, path, expected=expected)
    return JsonResponse({"key": path, "deleted": is_deleted})
