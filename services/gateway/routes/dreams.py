"""Dreams: start a run, read its progress and its changes, and undo it."""

from http import HTTPStatus
from typing import Annotated, Any

from pydantic import Field

from services.gateway import responses
from services.gateway.api_model import ApiModel, Flag, example
from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import (
    AgentId,
    Cursor,
    IdempotencyKeyDep,
    Limit,
    ReadCaller,
    ResourcesDep,
    UserId,
    WriteCaller,
)
from services.gateway.dream_response_models import RunChange, RunSummary, UndoneRun
from services.gateway.response_models import Page
from services.gateway.responses import JsonResponse
from shared.dreams.runs import read, start
from shared.dreams.runs import undo as undo_run
from shared.dreams.runs.dream_run import Run
from shared.foundation.optional_fields import without_none
from shared.foundation.stages import DreamPass
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area

router = authenticated_router(prefix="/v1/dreams", tags=["dreams"])


class DreamBody(ApiModel):
    """A run to start. Without `passes` it has all passes that are enabled."""

    model_config = example({"agent_id": "support", "user_id": "ada", "dry_run": True})

    agent_id: str | None = None
    user_id: str | None = None
    passes: Annotated[list[DreamPass], Field(max_length=len(DreamPass))] = []
    dry_run: Flag = False


@router.post("", status_code=HTTPStatus.CREATED, response_model=Run)
async def begin_dream(
    resources: ResourcesDep, caller: WriteCaller, body: DreamBody, idempotency_key: IdempotencyKeyDep
) -> JsonResponse:
    """Start a run over exactly one scope: an agent's common memory, or that of one user."""
    scope = rights.scope(caller, Area.DREAMS, Action.WRITE, body.agent_id, body.user_id)
    run = await start.start_on_demand(
        resources, scope, caller.key_id, body.passes, dry_run=body.dry_run, key=idempotency_key
    )
    return JsonResponse(run, HTTPStatus.CREATED)


@router.get("", response_model=Page[RunSummary])
async def list_dreams(
    resources: ResourcesDep,
    caller: ReadCaller,
    agent_id: AgentId = None,
    user_id: UserId = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> JsonResponse:
    """List runs, newest first."""
    rights.scope(caller, Area.DREAMS, Action.READ, agent_id, user_id)
    filters = without_none(agent_id=agent_id, user_id=user_id)
    rows = await read.list_runs(resources, caller, filters, limit + 1, responses.decode_cursor(cursor))
    return responses.page_response(rows, limit, _to_summary, lambda row: (row.created_at, row.id))


def _to_summary(run: Run) -> dict[str, Any]:
    return run.model_dump(mode="json", exclude={"passes"})


@router.get("/{run_id}", response_model=Run)
async def get_dream(resources: ResourcesDep, caller: ReadCaller, run_id: str) -> JsonResponse:
    """Read a run: for each pass what it read, proposed, had rejected and changed."""
    return JsonResponse((await read.read_run(resources, caller, run_id)).model_dump(mode="json"))


@router.get("/{run_id}/diff", response_model=Page[RunChange])
async def get_diff(resources: ResourcesDep, caller: ReadCaller, run_id: str) -> JsonResponse:
    """Read what a run changed, memory by memory, then in the graph, then what it proposed about skills."""
    changes = await read.read_changes(resources, caller, run_id)
    return JsonResponse({"results": changes, "next_cursor": None})


@router.post("/{run_id}/undo", response_model=UndoneRun)
async def undo_dream(resources: ResourcesDep, caller: WriteCaller, run_id: str) -> JsonResponse:
    """Undo a run, and return what could not be undone."""
    return JsonResponse(await undo_run.undo(resources, caller, run_id))
