"""The gateway as an ASGI application."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter, Depends, FastAPI, Request

from services.gateway import errors, media_types, openapi, query_parameters
from services.gateway.batch import refuse_in_batch
from services.gateway.body_room import BodyRoom
from services.gateway.dependencies import KEY
from services.gateway.drain import DrainMiddleware
from services.gateway.limits import LimitMiddleware
from services.gateway.mcp import McpEndpoint
from services.gateway.metrics import MetricsMiddleware
from services.gateway.routes import (
    agents,
    batch,
    budgets,
    business_context,
    collections,
    directives,
    documents,
    dreams,
    feedback,
    graph,
    mcp,
    memories,
    memory_actions,
    memory_keys,
    models,
    observations,
    operations,
    patterns,
    pinned,
    playbooks,
    preferences,
    proposals,
    scratch_stores,
    scratchpad,
    session_state,
    sessions,
    skills,
    spend,
    status,
    tools,
    transfer,
    turns,
    users,
    working,
)
from services.gateway.tracing import TracingMiddleware
from services.gateway.waiting import WaitMiddleware
from shared.foundation import config
from shared.infra import telemetry
from shared.infra.telemetry import traces
from shared.lifecycle.reindex import rebuild as rebuild_index
from shared.memory.preferences import domain_file
from shared.platform.resources import open_resources
from shared.platform.spend import price_lists

_SUMMARY = "The memory of a fleet of agents: conversation, working memory and long-term memory in one API."
# `transfer` and `memory_keys` come first, or `/v1/memories/export` would match `/v1/memories/{memory_id}`.
# The routes with a key: those under /v1, and /mcp. They refuse unknown and repeated query parameters.
_ROUTES = (
    transfer,
    memory_keys,
    memories,
    memory_actions,
    proposals,
    scratchpad,
    observations,
    sessions,
    turns,
    working,
    pinned,
    preferences,
    playbooks,
    skills,
    patterns,
    business_context,
    documents,
    graph,
    agents,
    session_state,
    collections,
    scratch_stores,
    feedback,
    directives,
    dreams,
    spend,
    budgets,
    users,
    status,
    models,
    batch,
    tools,
    mcp,
)


async def _check_request(request: Request) -> None:
    """Raise an error for a request that no route takes. It is authenticated, or it would learn more."""
    refuse_in_batch(request)
    query_parameters.check(request)
    await media_types.require_json(request)


def _with_checks() -> APIRouter:
    api = APIRouter(generate_unique_id_function=openapi.operation_id)
    for routes in _ROUTES:
        api.include_router(routes.router, dependencies=[KEY, Depends(_check_request)])
    return api


_API = _with_checks()
"""Shared by the apps of a process: what FastAPI builds for each route takes longer than most requests."""


def create_app(settings: config.Settings | None = None) -> FastAPI:
    """Return the gateway. It connects to its databases when it starts to serve, not here."""
    settings = settings or config.load()
    telemetry.set_up(settings, "gateway")

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_resources(settings) as resources:
            await rebuild_index.prepare_index(resources)
            # A file of prices or preferences that can't be read must stop the start.
            price_lists.listed_prices(settings)
            domain_file.read(settings)
            app.state.resources, app.state.mcp = resources, McpEndpoint()
            try:
                yield
            finally:
                await app.state.mcp.close()
        await asyncio.to_thread(traces.flush)

    app = FastAPI(
        title="Loci",
        version="1",
        summary=_SUMMARY,
        openapi_tags=openapi.tags(),
        generate_unique_id_function=openapi.operation_id,
        lifespan=lifespan,
    )
    errors.install(app)
    app.add_middleware(WaitMiddleware)
    app.add_middleware(LimitMiddleware, room=BodyRoom(settings.gateway_body_mb * 1024 * 1024))
    app.add_middleware(MetricsMiddleware)
    app.add_middleware(TracingMiddleware)
    app.add_middleware(DrainMiddleware)
    app.include_router(operations.router)
    app.router.routes.extend(_API.routes)
    openapi.install(app)
    return app
