"""Health, readiness, metrics and pending work."""

import asyncio
from collections.abc import Awaitable
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from services.gateway import metrics
from services.gateway.dependencies import ReadCaller, ResourcesDep
from services.gateway.drain import is_draining
from services.gateway.responses import JsonResponse
from shared.foundation import errors
from shared.infra import redis as redis_client
from shared.jobs import status

router = APIRouter(tags=["operations"])


@router.get("/healthz")
async def healthz() -> JsonResponse:
    """Answer as long as the process runs. No database is asked."""
    return JsonResponse({"status": "ok"})


@router.get("/readyz")
async def readyz(request: Request, resources: ResourcesDep) -> JsonResponse:
    """Read the state of each database. The gateway is ready while Postgres answers.

    Without Redis or Qdrant most requests still succeed. A gateway that has received a signal to stop
    is not ready, although it still serves.
    """
    names = ("postgres", "redis", "qdrant")
    probes = (resources.postgres.ping(), _ping_redis(resources), resources.qdrant.ping())
    states = dict(zip(names, await asyncio.gather(*map(_probe_state, probes)), strict=True))
    state = "draining" if is_draining(request.app) else "ready" if states["postgres"] == "ok" else "not ready"
    is_ready = state == "ready"
    content = {"status": state, "stores": states}
    return JsonResponse(content, HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE)


async def _ping_redis(resources: ResourcesDep) -> None:
    with redis_client.failures_as_unavailable():
        await resources.redis.ping()


async def _probe_state(probe: Awaitable[Any]) -> str:
    try:
        async with asyncio.timeout(3):
            await probe
    except (errors.LociError, TimeoutError) as error:
        return str(error) or "no answer in time"
    return "ok"


@router.get("/metrics", response_class=Response)
async def read_metrics(resources: ResourcesDep) -> Response:
    """Read metrics in Prometheus's text format. Their names begin with `loci_`."""
    return Response(await metrics.render(resources), media_type=metrics.CONTENT_TYPE)


@router.get("/v1/status")
async def read_status(resources: ResourcesDep, caller: ReadCaller) -> JsonResponse:
    """Count the tenant's pending jobs. All 0 means that everything is enriched, embedded and searchable."""
    return JsonResponse(await status.tenant_status(resources.postgres, caller.tenant))
