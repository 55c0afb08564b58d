"""The knowledge graph: entities, what connects them and when, and what a message is about."""

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import Query

from services.gateway import responses
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
from services.gateway.graph_models import (
    ConnectionsResponse,
    EntityBody,
    InvalidateBody,
    MatchBody,
    MatchedEntitiesResponse,
    TraverseBody,
    TripleBody,
)
from services.gateway.response_models import DeletedRecord, Page
from services.gateway.responses import JsonResponse
from shared.foundation import errors
from shared.foundation.optional_fields import without_none
from shared.lifecycle import delete_graph
from shared.memory.graph import invalidate, read, save
from shared.memory.graph.entity import Entity, EntityType
from shared.memory.graph.triple import Triple
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area

router = authenticated_router(prefix="/v1/graph", tags=["knowledge graph"])
Validity = Annotated[
    Literal["any"] | None, Query(description="`any`: also what is not, not yet or no longer valid.")
]


@router.post("/entities", status_code=HTTPStatus.CREATED, response_model=Entity)
async def save_entity(
    resources: ResourcesDep, caller: WriteCaller, body: EntityBody, idempotency_key: IdempotencyKeyDep
) -> JsonResponse:
    """Save an entity. If its agent and user have one of this name, aliases and metadata are added to it.

    An entity has at most 64 aliases: with more it is a 422, or a 409 if those that it has are too many.
    """
    scope = rights.scope(caller, Area.MEMORIES, Action.WRITE, body.agent_id, body.user_id)
    entity = await save.save_entity(resources, scope, body.draft(), idempotency_key)
    return JsonResponse(entity, HTTPStatus.CREATED)


@router.get("/entities", response_model=Page[Entity])
async def list_entities(
    resources: ResourcesDep,
    scope: ReadScope,
    name: str | None = None,
    type: EntityType | None = None,  # noqa: A002  (a query parameter)
    validity: Validity = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> JsonResponse:
    """List the agent's entities and, with a user, those of this user. `name` may be an alias."""
    filters: dict[str, Any] = {**without_none(name=name), **without_none(type=type)}
    filters |= {"any": validity == "any"}
    rows = await read.list_entities(resources, scope, filters, limit + 1, _position(cursor))
    return responses.page_response(rows, limit, Entity.to_json, lambda row: (row.created_at, row.id))


@router.get("/entities/{entity_id}", response_model=Entity)
async def get_entity(resources: ResourcesDep, caller: ReadCaller, entity_id: str) -> JsonResponse:
    """Read an entity, expired or not."""
    return JsonResponse((await read.get_entity(resources, caller, entity_id)).to_json())


@router.delete("/entities/{entity_id}", response_model=DeletedRecord)
async def delete_entity(resources: ResourcesDep, caller: WriteCaller, entity_id: str) -> JsonResponse:
    """Delete an entity with its triples. No dream brings it back. If there is none, `deleted` is false."""
    is_deleted = await delete_graph.delete_entity(resources, caller, entity_id)
    return JsonResponse({"id": entity_id, "deleted": is_deleted})


@router.post("/triples", status_code=HTTPStatus.CREATED, response_model=Triple)
async def save_triple(
    resources: ResourcesDep, caller: WriteCaller, body: TripleBody, idempotency_key: IdempotencyKeyDep
) -> JsonResponse:
    """Save a triple. One that says the same and is not over is confirmed: the higher confidence stays."""
    scope = rights.scope(caller, Area.MEMORIES, Action.WRITE, body.agent_id, body.user_id)
    triple = await save.save_triple(
        resources, scope, body.draft(), caller.origin.lowered(body.trust), idempotency_key
    )
    return JsonResponse(triple, HTTPStatus.CREATED)


@router.get("/triples", response_model=Page[Triple])
async def list_triples(
    resources: ResourcesDep,
    scope: ReadScope,
    entity_id: str | None = None,
    predicate: str | None = None,
    as_of: datetime | None = None,
    validity: Validity = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> JsonResponse:
    """List the triples that hold now, or at `as_of`: the agent's and, with a user, those of this user."""
    filters: dict[str, Any] = {**without_none(entity_id=entity_id, predicate=predicate)}
    filters |= {**without_none(as_of=as_of), "any": validity == "any"}
    rows = await read.list_triples(resources, scope, filters, limit + 1, _position(cursor))
    return responses.page_response(rows, limit, Triple.to_json, lambda row: (row.created_at, row.id))


@router.get("/triples/{triple_id}", response_model=Triple)
async def get_triple(resources: ResourcesDep, caller: ReadCaller, triple_id: str) -> JsonResponse:
    """Read a triple, whether it holds or not."""
    return JsonResponse((await read.get_triple(resources, caller, triple_id)).to_json())


@router.delete("/triples/{triple_id}", response_model=DeletedRecord)
async def delete_triple(resources: ResourcesDep, caller: WriteCaller, triple_id: str) -> JsonResponse:
    """Delete a triple. No dream brings it back. If there is none, `deleted` is false."""
    is_deleted = await delete_graph.delete_triple(resources, caller, triple_id)
    return JsonResponse({"id": triple_id, "deleted": is_deleted})


@router.post("/triples/{triple_id}/invalidate", response_model=Triple)
async def invalidate_triple(
    resources: ResourcesDep, caller: WriteCaller, triple_id: str, body: InvalidateBody
) -> JsonResponse:
    """Say that a triple does not hold any more, and why. It stays readable and can be restored."""
    triple = await invalidate.invalidate(resources, caller, triple_id, body.reason, body.invalid_at)
    return JsonResponse(triple.to_json())


@router.post("/triples/{triple_id}/restore", response_model=Triple)
async def restore_triple(resources: ResourcesDep, caller: WriteCaller, triple_id: str) -> JsonResponse:
    """Let an invalidated triple hold as before. If another one says the same by now, it is a 409."""
    return JsonResponse((await invalidate.restore(resources, caller, triple_id)).to_json())


@router.post("/match", response_model=MatchedEntitiesResponse)
async def match_entities(resources: ResourcesDep, caller: ReadCaller, body: MatchBody) -> JsonResponse:
    """Find the entities whose name or alias occurs in a text: whole words, of at least three characters.

    Case, accents and punctuation don't count. Of a text over 20 000 characters the first and the last 10 000
    are read.
    """
    scope = rights.scope(caller, Area.MEMORIES, Action.READ, body.agent_id, body.user_id)
    entities = await read.match(resources, caller, scope, body.text, body.as_of)
    return JsonResponse({"results": [entity.to_json() for entity in entities]})


@router.post("/traverse", response_model=ConnectionsResponse)
async def traverse_graph(resources: ResourcesDep, caller: ReadCaller, body: TraverseBody) -> JsonResponse:
    """Find what is connected with entities, in both directions, over one or two hops."""
    if not body.named:
        raise errors.Invalid("entity", "must be given, or names")
    scope = rights.scope(caller, Area.MEMORIES, Action.READ, body.agent_id, body.user_id)
    steps = await read.traverse(resources, scope, body.named, body.hops, body.limit, body.as_of)
    return JsonResponse({"results": [step.to_json() for step in steps]})


def _position(cursor: str | None) -> str:
    """Return the id after which a page begins."""
    position = responses.decode_cursor(cursor)
    return "" if position is None else position[1]
