"""The pending work of a tenant."""

from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import ReadCaller, ResourcesDep
from services.gateway.response_models import StatusResponse
from services.gateway.responses import JsonResponse
from shared.foundation.stages import EMBED
from shared.jobs import status
from shared.lifecycle.reindex.waiting import count_waiting
from shared.memory.proposals.read import summarise

EMBEDDING = status.NAMES[EMBED.name]
router = authenticated_router(prefix="/v1/status", tags=["operations"])


@router.get("", response_model=StatusResponse)
async def read_status(resources: ResourcesDep, caller: ReadCaller) -> JsonResponse:
    """Count the tenant's pending jobs. All 0 means that everything is enriched, embedded and searchable."""
    summary = await status.tenant_status(resources.postgres, caller.tenant)
    summary["proposals"] = await summarise(resources, caller)
    summary["pending"][EMBEDDING] += await count_waiting(resources, caller.tenant)
    return JsonResponse(summary)
