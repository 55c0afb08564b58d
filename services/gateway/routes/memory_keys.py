"""Memories by the keys that their callers chose, and the namespaces of the keys."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Depends, Query

from services.gateway import etag, responses
from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import (
    AgentId,
    Cursor,
    IdempotencyKeyDep,
    Limit,
    ReadScope,
    ResourcesDep,
    UserId,
    WriteCaller,
)
from services.gateway.etag import Condition, IfMatch
from services.gateway.memory_models import MemoryBody, Reason, check_reason
from services.gateway.memory_response import memory_response, versioned_response
from services.gateway.memory_response_models import DeletedKeyedMemory, NamespaceCount
from services.gateway.response_models import Page
from services.gateway.responses import JsonResponse
from services.gateway.waiting import WAITS
from shared.lifecycle import delete_memory as delete_memory_everywhere
from shared.memory.longterm import by_key
from shared.memory.longterm.memory import MAX_KEY_LENGTH, Memory, Name, check_name
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area

router = authenticated_router(prefix="/v1", tags=["memories"])
Namespace = Annotated[str, Query(description="The namespace of the key; none if it is not given.")]
Key = Annotated[str, Query(description=f"The key, of at most {MAX_KEY_LENGTH} characters.")]
_PATTERN = "Whole segments, in which `*` stands for any one segment."


def _name(key: Key, namespace: Namespace = "") -> Name:
    check_name(namespace, key)
    return namespace, key


NameDep = Annotated[Name, Depends(_name)]


@router.put(
    "/memories/by-key",
    response_model=Memory,
    responses={HTTPStatus.CREATED: {"model": Memory}},
    dependencies=[WAITS],
)
async def put_memory(
    resources: ResourcesDep,
    caller: WriteCaller,
    name: NameDep,
    body: MemoryBody,
    expected: Condition,
    idempotency_key: IdempotencyKeyDep,
    agent_id: AgentId = None,
    user_id: UserId = None,
) -> JsonResponse:
    """Save a memory under a key, in place of the one that has it, if the condition in the headers is met.

    Without a condition whatever is stored is replaced. The response is a 201 if nothing was.
    """
    namespace, key = name
    named = body.named(namespace=namespace or None, key=key, agent_id=agent_id, user_id=user_id)
    scope = rights.scope(caller, Area.MEMORIES, Action.WRITE, named.agent_id, named.user_id)
    saved = await by_key.put(resources, scope, caller, named.draft(), expected, idempotency_key)
    return versioned_response(saved.memory, HTTPStatus.CREATED if saved.is_new else HTTPStatus.OK)


@router.get("/memories/by-key", response_model=Memory)
async def get_memory_by_key(resources: ResourcesDep, scope: ReadScope, name: NameDep) -> JsonResponse:
    """Read the memory that has this key in exactly this namespace, agent and user."""
    return memory_response(await by_key.read(resources, scope, name))


@router.delete("/memories/by-key", response_model=DeletedKeyedMemory)
async def delete_memory_by_key(
    resources: ResourcesDep,
    caller: WriteCaller,
    name: NameDep,
    agent_id: AgentId = None,
    user_id: UserId = None,
    reason: Reason = None,
    if_match: IfMatch = None,
) -> JsonResponse:
    """Delete every copy of the memory that has this key. If there is none, `deleted` is false."""
    scope = rights.scope(caller, Area.MEMORIES, Action.WRITE, agent_id, user_id)
    expected = etag.expected_versions(if_match, None)
    memory = await delete_memory_everywhere.delete_by_key(
        resources, caller, scope, name, check_reason(reason), expected
    )
    found: dict[str, Any] = {"id": memory and memory.id, "content": memory and memory.content}
    return JsonResponse(found | {"deleted": memory is not None})


@router.get("/namespaces", response_model=Page[NamespaceCount])
async def list_namespaces(
    resources: ResourcesDep,
    scope: ReadScope,
    prefix: Annotated[str | None, Query(description=_PATTERN, examples=["preferences/*"])] = None,
    suffix: Annotated[str | None, Query(description=_PATTERN, examples=["travel"])] = None,
    max_depth: Annotated[int | None, Query(ge=1, le=256)] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> JsonResponse:
    """List the namespaces of keys in exactly this agent and user, with the number of memories in each.

    Namespaces deeper than `max_depth` are counted under their first segments.
    """
    after = responses.decode_name_cursor(cursor)
    rows = await by_key.list_namespaces(resources, scope, prefix, suffix, max_depth, after, limit + 1)
    results = [{"namespace": namespace, "count": count} for namespace, count in rows[:limit]]
    next_cursor = responses.encode_name_cursor(rows[limit - 1][0]) if len(rows) > limit else None
    return JsonResponse({"results": results, "next_cursor": next_cursor})
