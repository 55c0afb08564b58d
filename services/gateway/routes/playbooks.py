"""Playbooks: record how a flow went, and find what worked before."""

from http import HTTPStatus
from typing import Annotated, Any

from pydantic import FailFast, Field

from services.gateway import responses
from services.gateway.api_model import ApiModel, Count, Flag, RequestedTrust, example
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
from services.gateway.response_models import DeletedRecord, Page
from services.gateway.responses import JsonResponse
from services.gateway.waiting import WAITS
from shared.foundation.optional_fields import without_none
from shared.lifecycle import delete_playbook as delete_playbook_everywhere
from shared.memory.playbooks import read, record
from shared.memory.playbooks import search as playbook_search
from shared.memory.playbooks.playbook import Playbook, PlaybookDraft, ToolCall
from shared.memory.playbooks.record import Place
from shared.memory.playbooks.search import Because, PlaybookQuery

router = authenticated_router(prefix="/v1/playbooks", tags=["playbooks"])


class ToolCallBody(ApiModel):
    """A tool that was called, and the parameters that mattered."""

    tool_id: str
    parameters: dict[str, Any] = {}


class _PlacedBody(ApiModel):
    """The scope of a request: that of the session, if one is named."""

    agent_id: str | None = None
    user_id: str | None = None
    session_id: str | None = None

    def place(self) -> Place:
        """Return the scope or session that the request names."""
        return Place(self.agent_id, self.user_id, self.session_id)


class PlaybookBody(_PlacedBody):
    """How a flow went: the tools that were called in their order, and the query that it answered."""

    model_config = example(
        {
            "flow_dact": "book_flight",
            "slots": {"destination": "Lisbon"},
            "tool_calls": [{"tool_id": "flights.search", "parameters": {"to": "LIS"}}],
            "outcome": "success",
            "user_query": "Find me a flight to Lisbon on Friday.",
            "user_id": "ada",
        }
    )

    flow_dact: str
    slots: dict[str, Any] = {}
    tool_calls: Annotated[list[ToolCallBody], FailFast()]
    outcome: Annotated[
        str, Field(description="completed, success, failure, uncertain or invalid, in any case.")
    ]
    user_query: str
    satisfied: Annotated[
        Flag | None,
        Field(
            description="What the user said of it. Without it, what the user says next in the session counts."
        ),
    ] = None
    trust: RequestedTrust = None

    def draft(self) -> PlaybookDraft:
        """Return the playbook to record. Raise errors.Invalid if it breaks a rule."""
        fields = self.model_dump(exclude={"agent_id", "user_id", "session_id", "tool_calls"})
        calls = tuple(ToolCall(tool_id=call.tool_id, parameters=call.parameters) for call in self.tool_calls)
        return PlaybookDraft(**fields, tool_calls=calls).validated()


class PlaybookSearchBody(_PlacedBody):
    """A search by a flow, by a user's query, or by both."""

    model_config = example({"flow": "book_flight", "query": "a flight to Lisbon", "session_id": "support-42"})

    flow: str | None = None
    query: str | None = None
    limit: Annotated[Count, Field(ge=1, le=100)] = 5


class PlaybookHit(Playbook):
    """A playbook that a search found, and why. The score is 1, or the cosine of both queries."""

    because: list[Because]
    score: float


class FoundPlaybooksResponse(ApiModel):
    """The playbooks that a search found, best first; what ran, what was missing, and the snippet written."""

    results: list[PlaybookHit]
    stages: list[str]
    degraded: list[str]
    snippet_id: str | None


@router.post("", status_code=HTTPStatus.CREATED, response_model=Playbook, dependencies=[WAITS])
async def record_playbook(
    resources: ResourcesDep, caller: WriteCaller, body: PlaybookBody, idempotency_key: IdempotencyKeyDep
) -> JsonResponse:
    """Record a playbook. It is promoted if the flow was completed and the user was satisfied.

    `promoted` and `reason` tell what became of it. In a session whose user has said nothing since, it waits
    for the user's next turn: a correction, or going on without one.
    """
    playbook = await record.record(resources, caller, body.place(), body.draft(), idempotency_key)
    return JsonResponse(playbook, HTTPStatus.CREATED)


@router.get("", response_model=Page[Playbook])
async def list_playbooks(
    resources: ResourcesDep,
    scope: ReadScope,
    flow: str | None = None,
    promoted: bool | None = None,  # noqa: FBT001  (a query parameter)
    limit: Limit = 20,
    cursor: Cursor = None,
) -> JsonResponse:
    """List the agent's playbooks and, with a user, those of this user, newest first."""
    filters: dict[str, Any] = {**without_none(flow_dact=flow), **without_none(promoted=promoted)}
    after = responses.decode_cursor(cursor)
    rows = await read.list_playbooks(resources, scope, filters, limit + 1, after)
    return responses.page_response(
        rows, limit, lambda row: row.model_dump(mode="json"), lambda row: (row.created_at, row.id)
    )


@router.post("/search", response_model=FoundPlaybooksResponse)
async def search_playbooks(
    resources: ResourcesDep, caller: ReadCaller, body: PlaybookSearchBody
) -> JsonResponse:
    """Find promoted playbooks of a flow, or for a query that means the same (a cosine of at least 0.80).

    With a session, the best one is written to its scratchpad before the answer is sent: that needs the right
    to write.
    """
    query = PlaybookQuery(body.flow, body.query, body.limit).validated()
    found = await playbook_search.search(resources, caller, body.place(), query)
    results = [
        match.playbook.model_dump(mode="json") | {"because": match.because, "score": match.score}
        for match in found.matches
    ]
    more = {"stages": found.stages, "degraded": found.degraded, "snippet_id": found.snippet_id}
    return JsonResponse({"results": results, **more})


@router.get("/{playbook_id}", response_model=Playbook)
async def get_playbook(resources: ResourcesDep, caller: ReadCaller, playbook_id: str) -> JsonResponse:
    """Read a playbook, promoted or not."""
    playbook = await read.get(resources, caller, playbook_id)
    return JsonResponse(playbook.model_dump(mode="json"))


@router.delete("/{playbook_id}", response_model=DeletedRecord)
async def delete_playbook(resources: ResourcesDep, caller: WriteCaller, playbook_id: str) -> JsonResponse:
    """Delete a playbook with every copy. If there is none, `deleted` is false."""
    is_deleted = await delete_playbook_everywhere.delete_playbook(resources, caller, playbook_id)
    return JsonResponse({"id": playbook_id, "deleted": is_deleted})
