"""Proposals: what waits for a decision, of memories and of skills; approve, edit or refuse one."""

from typing import Annotated

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
from services.gateway.proposal_models import ProposalAction, ProposalDecision, ProposalResponse
from services.gateway.response_models import Page
from services.gateway.responses import JsonResponse
from shared.dreams.skill_proposals import any_kind
from shared.memory.proposals.proposal import ProposalState

router = authenticated_router(prefix="/v1/proposals", tags=["proposals"])
Kind = Annotated[
    str | None,
    Query(description="`skill`, or a kind of those of memories; without it all but `skill`.", max_length=32),
]


@router.get("", response_model=Page[ProposalResponse])
async def list_proposals(
    resources: ResourcesDep,
    caller: ReadCaller,
    scope: ReadScope,
    kind: Kind = None,
    state: ProposalState | None = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> JsonResponse:
    """List proposals of the agent and, with a user, of this user, newest first: all, or those in a state.

    Those about skills are listed apart, with `kind=skill`.
    """
    after = responses.decode_cursor(cursor)
    rows = await any_kind.list_proposals(resources, caller, scope, kind, state, limit + 1, after)
    return responses.page_response(rows, limit, any_kind.to_json, lambda row: (row.created_at, row.id))


@router.get("/{proposal_id}", response_model=ProposalResponse)
async def get_proposal(resources: ResourcesDep, caller: ReadCaller, proposal_id: str) -> JsonResponse:
    """Read a proposal with its evidence."""
    return JsonResponse(await any_kind.get(resources, caller, proposal_id))


@router.post("/{proposal_id}", response_model=ProposalResponse)
async def decide_proposal(
    resources: ResourcesDep,
    caller: WriteCaller,
    proposal_id: str,
    body: ProposalDecision,
    idempotency_key: IdempotencyKeyDep,
) -> JsonResponse:
    """Approve a proposal, which stores it, or refuse it.

    If it was decided before, or if something that it was made from was deleted, edited or archived since,
    the response is a 409.
    """
    decided = await any_kind.decide(
        resources,
        caller,
        proposal_id,
        body.edited,
        body.reason,
        idempotency_key,
        is_approved=body.action is ProposalAction.APPROVE,
    )
    return JsonResponse(decided)
