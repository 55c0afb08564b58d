"""Working memory over HTTP. Keys are full paths, with `/` inside."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from services.gateway.api_model import Body, Count, Seconds, example
from services.gateway.dependencies import Opened, Reader, Writer
from services.gateway.responses import Json
from shared.infra import redis as redis_client
from shared.memory.working import access, keys, render, write
from shared.memory.working import queries as working_queries
from shared.memory.working import search as working_search
from shared.memory.working.queries import Desk
from shared.memory.working.search import DeskCriteria
from shared.memory.working.working_entry import DeskEntry

router = APIRouter(prefix="/v1/working", tags=["working memory"])
Namespace = Annotated[
    str | None, Query(description="Binds this call: relative keys resolve in it.", examples=["session/abc"])
]


class EntryBody(Body):
    """What to put on the desk."""

    model_config = Body.model_config | {
        "json_schema_extra": {
            "examples": [{"value": "3 unread mails", "ttl_seconds": 600, "tags": ["inbox"]}]
        }
    }

    value: str
    ttl_seconds: Seconds | None = None
    category: str | None = None
    tags: list[str] = []


class DeskSearchBody(Body):
    """A search over desks; without a query the newest come first."""

    model_config = example({"query": "unread mails", "prefix": "session/abc"})

    query: Annotated[str | None, Field(max_length=16_000)] = None
    prefix: str = ""
    category: str | None = None
    tags: list[str] = []
    limit: Annotated[Count, Field(ge=1, le=100)] = 20


@router.get("")
async def list_entries(opened: Opened, caller: Reader, prefix: str = "", namespace: Namespace = None) -> Json:
    """List entries under a prefix, without their values."""
    bound = access.bound_namespace(caller, namespace)
    desk = Desk(opened.redis, opened.settings, caller.tenant)
    with redis_client.translated():
        listed = await working_queries.listings(desk, keys.resolve_prefix(prefix, bound))
    seen = await access.visible(opened.postgres, caller, [one.key for one in listed])
    shown = [one.model_dump(mode="json") for one in listed if keys.namespace_of(one.key) in seen]
    return Json({"results": shown, "next_cursor": None})


@router.delete("")
async def clear_entries(opened: Opened, caller: Writer, prefix: str, namespace: Namespace = None) -> Json:
    """Delete everything at and beneath a prefix."""
    path = keys.resolve_prefix(prefix, access.bound_namespace(caller, namespace), write=True)
    await access.check_clear(opened.postgres, caller, path)
    return Json({"prefix": path, "deleted": await write.clear(opened, caller.tenant, path)})


@router.post("/search")
async def search_entries(
    opened: Opened, caller: Reader, body: DeskSearchBody, namespace: Namespace = None
) -> Json:
    """Find entries by their words, tags and category; values are shortened."""
    prefix = keys.resolve_prefix(body.prefix, access.bound_namespace(caller, namespace))
    criteria = DeskCriteria(prefix, body.category, tuple(body.tags))
    found = await working_search.search(opened, caller, body.query, criteria, body.limit)
    results = [_previewed(one) | {"score": score} for one, score in found.results]
    return Json({"results": results, "stages": found.stages, "degraded": found.degraded})


def _previewed(entry: DeskEntry) -> dict[str, Any]:
    return entry.model_dump(mode="json") | {"value": render.preview(entry.value)}


@router.put("/{key:path}", response_model=DeskEntry)
async def put_entry(
    opened: Opened, caller: Writer, key: str, body: EntryBody, namespace: Namespace = None
) -> Json:
    """Write an entry; overwriting keeps its slot and starts its time anew."""
    path = keys.resolve(key, access.bound_namespace(caller, namespace), write=True)
    await access.check(opened.postgres, caller, path)
    fields: dict[str, Any] = {"ttl_seconds": body.ttl_seconds, "category": body.category, "tags": body.tags}
    entry = await write.put(opened, caller.tenant, path, body.value, **fields)
    return Json(entry.model_dump(mode="json"))


@router.get("/{key:path}", response_model=DeskEntry)
async def get_entry(
    opened: Opened,
    caller: Reader,
    key: str,
    namespace: Namespace = None,
    full: Annotated[bool, Query(description="The whole of a large value, not its outline.")] = False,  # noqa: FBT002
) -> Json:
    """Read an entry, the outline of a large one, or a part of it."""
    path = keys.resolve(key, access.bound_namespace(caller, namespace))
    await access.check(opened.postgres, caller, path)
    with redis_client.translated():
        entry = await working_queries.get(Desk(opened.redis, opened.settings, caller.tenant), path, full=full)
    return Json(entry.model_dump(mode="json"))


@router.delete("/{key:path}")
async def delete_entry(opened: Opened, caller: Writer, key: str, namespace: Namespace = None) -> Json:
    """Delete an entry with its parts; one that is not there is a no-op that says so."""
    path = keys.resolve(key, access.bound_namespace(caller, namespace), write=True)
    await access.check(opened.postgres, caller, path)
    return Json({"key": path, "deleted": await write.delete(opened, caller.tenant, path)})
