"""Health, readiness and metrics: what a probe asks without a key."""

from http import HTTPStatus

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from services.gateway import metrics
from services.gateway.dependencies import ResourcesDep
from services.gateway.drain import is_draining
from services.gateway.response_models import Health, Readiness
from services.gateway.responses import JsonResponse
from shared.platform import probe

router = APIRouter(tags=["operations"])


@router.get("/healthz", response_model=Health)
async def healthz() -> JsonResponse:
    """Answer as long as the process runs. No database is asked."""
    return JsonResponse({"status": "ok"})


@router.get("/readyz", response_model=Readiness)
async def readyz(request: Request, resources: ResourcesDep) -> JsonResponse:
    """Read the state of each database. The gateway is ready while Postgres answers.

    Without Redis or Qdrant most requests still succeed. A gateway that has received a signal to stop
    is not ready, although it still serves.
    """
    states = await probe.database_states(resources)
    state = "draining" if is_draining(request.app) else "ready" if states["postgres"] == "ok" else "not ready"
    is_ready = state == "ready"
    content = {"status": state, "stores": states}
    return JsonResponse(content, HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE)


@router.get("/metrics", response_class=PlainTextResponse)
async def read_metrics(resources: ResourcesDep) -> Response:
    """Read metrics in Prometheus's text format. Their names begin with `loci_`."""
    return Response(await metrics.render(resources), media_type=metrics.CONTENT_TYPE)
