"""The pending work of a tenant."""

from fastapi import APIRouter

from services.gateway.dependencies import ReadCaller, ResourcesDep
from services.gateway.response_models import StatusResponse
from services.gateway.responses import JsonResponse
from shared.jobs import status

router = APIRouter(prefix="/v1/status", tags=["operations"])


@router.get("", response_model=StatusResponse)
async def read_status(resources: ResourcesDep, caller: ReadCaller) -> JsonResponse:
    """Count the tenant's pending jobs. All 0 means that everything is enriched, embedded and searchable."""
    return JsonResponse(await status.tenant_status(resources.postgres, caller.tenant))
