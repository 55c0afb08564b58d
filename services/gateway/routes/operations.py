"""Health, readiness, metrics, and what is behind."""

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
    """Tell that the process answers; nothing else is asked."""
    return JsonResponse({"status": "ok"})


@router.get("/readyz")
async def readyz(request: Request, resources: ResourcesDep) -> JsonResponse:
    """Tell the state of each store; ready as long as Postgres answers, for then most things work.

    A gateway that has been told to stop is no longer ready, while it still serves.
    """
    names = ("postgres", "redis", "qdrant")
    probes = (resources.postgres.ping(), _ping_redis(resources), resources.qdrant.ping())
    states = dict(zip(names, await asyncio.gather(*map(_state, probes)), strict=True))
    state = "draining" if is_draining(request.app) else "ready" if states["postgres"] == "ok" else "not ready"
    ready = state == "ready"
    told = {"status": state, "stores": states}
    return JsonResponse(told, HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE)


async def _ping_redis(resources: ResourcesDep) -> None:
    with redis_client.failures_as_unavailable():
        await resources.redis.ping()


async def _state(probe: Awaitable[Any]) -> str:
    try:
        async with asyncio.timeout(3):
            await probe
    except (errors.LociError, TimeoutError) as error:
        return str(error) or "no answer in time"
    return "ok"


@router.get("/metrics", response_class=Response)
async def read_metrics(resources: ResourcesDep) -> Response:
    """Metrics in Prometheus's text format; names begin with `loci_`."""
    return Response(await metrics.render(resources), media_type=metrics.CONTENT_TYPE)


@router.get("/v1/status")
async def read_status(resources: ResourcesDep, caller: ReadCaller) -> JsonResponse:
    """Tell what is still to be done for the caller's tenant: all 0 means enriched, embedded, searchable."""
    return JsonResponse(await status.tenant_status(resources.postgres, caller.tenant))
