"""The scratchpad of a session: write and read snippets, promote them, and save a report that promotes."""

from http import HTTPStatus
from typing import Annotated

from fastapi import Query
from pydantic import Field

from services.gateway import responses
from services.gateway.api_model import ApiModel, RequestedTrust, example
from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import (
    Cursor,
    IdempotencyKeyDep,
    Limit,
    ReadCaller,
    ResourcesDep,
    WriteCaller,
)
from services.gateway.paths import SessionId
from services.gateway.response_models import Page
from services.gateway.responses import JsonResponse
from services.gateway.scratchpad_models import ReportResponse, ScratchpadResponse, WrittenSnippet
from services.gateway.waiting import WAITS
from shared.conversation.scratchpad import read, write
from shared.conversation.scratchpad.snippet import MAX_SNIPPETS
from shared.dreams.promotion import promote, report
from shared.dreams.promotion import read as promotion_read
from shared.dreams.promotion.promotion import Promotion, PromotionTarget
from shared.dreams.promotion.report import ReportDraft

router = authenticated_router(prefix="/v1/sessions", tags=["scratchpad"])


class SnippetBody(ApiModel):
    """A snippet to note: one thing in a sentence or two."""

    model_config = example({"content": "Ada wants her invoices in one monthly e-mail."})

    content: str
    trust: RequestedTrust = None


class PromotionBody(ApiModel):
    """What to promote: the snippets that are named, else all that were not promoted before."""

    model_config = example({"ids": ["5d0c1f7a9b3e"], "to": "preference", "reason": "she said so twice"})

    ids: Annotated[list[str] | None, Field(min_length=1, max_length=MAX_SNIPPETS)] = None
    to: Annotated[
        PromotionTarget | None,
        Field(
            description="By default a preference, and of a session without a user business context, if the "
            "key may write that: only an unbound key may."
        ),
    ] = None
    reason: str | None = None


class ReportBody(ApiModel):
    """A report of what a session has found out."""

    model_config = example({"title": "Billing of Ada Ltd.", "content": "Invoices go out once a month …"})

    title: str
    content: str
    trust: RequestedTrust = None


@router.post(
    "/{session_id:session}/scratchpad", status_code=HTTPStatus.CREATED, response_model=WrittenSnippet
)
async def write_snippet(
    resources: ResourcesDep,
    caller: WriteCaller,
    session_id: SessionId,
    body: SnippetBody,
    idempotency_key: IdempotencyKeyDep,
) -> JsonResponse:
    """Write a snippet. A near-identical one is not stored again, but its count is raised.

    A session has at most 64 snippets: then the one that was used least recently gives way, and first of all
    those that were promoted.
    """
    snippet = await write.write(
        resources, caller, session_id, body.content, idempotency_key, trust=body.trust
    )
    return JsonResponse(snippet, HTTPStatus.CREATED)


@router.get("/{session_id:session}/scratchpad", response_model=ScratchpadResponse)
async def list_snippets(
    resources: ResourcesDep,
    caller: ReadCaller,
    session_id: SessionId,
    query: Annotated[
        str | None,
        Query(min_length=1, max_length=1000, description="Only snippets with all of these words."),
    ] = None,
) -> JsonResponse:
    """Read all snippets of a session, oldest first. With a query, what is found counts as used."""
    snippets, degraded = await read.list_snippets(resources, caller, session_id, query)
    results = [snippet.model_dump(mode="json") for snippet in snippets]
    return JsonResponse({"results": results, "next_cursor": None, "degraded": degraded})


@router.post("/{session_id:session}/scratchpad/promote", response_model=Promotion, dependencies=[WAITS])
async def promote_snippets(
    resources: ResourcesDep,
    caller: WriteCaller,
    session_id: SessionId,
    body: PromotionBody,
    idempotency_key: IdempotencyKeyDep,
) -> JsonResponse:
    """Promote snippets to memories of the session's scope, or to the tenant's business context.

    A copy of a playbook is promoted only if it is named: what was made from it stays when the playbook goes.
    """
    request = promote.Request(body.ids, body.to, body.reason).validated()
    return JsonResponse(await promote.promote(resources, caller, session_id, request, idempotency_key))


@router.get("/{session_id:session}/scratchpad/promotions", response_model=Page[Promotion])
async def list_promotions(
    resources: ResourcesDep,
    caller: ReadCaller,
    session_id: SessionId,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> JsonResponse:
    """List the promotions of a session, newest first: the scores of each snippet, and what became of it."""
    after = responses.decode_cursor(cursor)
    rows = await promotion_read.list_promotions(resources, caller, session_id, limit + 1, after)
    return responses.page_response(
        rows, limit, lambda row: row.model_dump(mode="json"), lambda row: (row.created_at, row.id)
    )


@router.post(
    "/{session_id:session}/report",
    status_code=HTTPStatus.CREATED,
    response_model=ReportResponse,
    dependencies=[WAITS],
)
async def save_report(
    resources: ResourcesDep,
    caller: WriteCaller,
    session_id: SessionId,
    body: ReportBody,
    idempotency_key: IdempotencyKeyDep,
) -> JsonResponse:
    """Save a report, and promote what is worth keeping of the session's scratchpad.

    The report is an observation of the kind `report`. If a language model is configured it judges the
    snippets; then a worker promotes them a little later.
    """
    draft = ReportDraft(body.title, body.content)
    saved = await report.save_report(resources, caller, session_id, draft, idempotency_key)
    return JsonResponse(saved, HTTPStatus.CREATED)
