"""The gateway as an ASGI application."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI

from services.gateway import errors, query_parameters
from services.gateway.drain import DrainMiddleware
from services.gateway.limits import LimitMiddleware
from services.gateway.metrics import MetricsMiddleware
from services.gateway.routes import (
    agents,
    budgets,
    collections,
    directives,
    dreams,
    feedback,
    memories,
    observations,
    operations,
    scratch_stores,
    session_state,
    sessions,
    spend,
    status,
    transfer,
    turns,
    users,
    working,
)
from services.gateway.tracing import TracingMiddleware
from shared.foundation import config
from shared.infra import telemetry
from shared.infra.telemetry import traces
from shared.lifecycle.reindex import rebuild as rebuild_index
from shared.platform.resources import open_resources
from shared.platform.spend import prices

_SUMMARY = "The memory of a fleet of agents: conversation, working memory and long-term memory in one API."
# `transfer` comes first, or `/v1/memories/export` would match `/v1/memories/{memory_id}`.
# The routes under /v1: they need a key, and refuse unknown query parameters.
_ROUTES = (
    transfer,
    memories,
    working,
    observations,
    agents,
    sessions,
    turns,
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
)


def create_app(settings: config.Settings | None = None) -> FastAPI:
    """Return the gateway. It connects to its databases when it starts to serve, not here."""
    settings = settings or config.load()
    telemetry.set_up(settings, "gateway")

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_resources(settings) as resources:
            await rebuild_index.prepare_index(resources)
            prices.listed_prices(settings)  # a price file that can't be read must stop the start
            app.state.resources = resources
            gc.collect()
            # What the start made stays: a collection that walked it would take longer than a request.
            gc.freeze()
            yield
        await asyncio.to_thread(traces.flush)

    app = FastAPI(title="Loci", version="1", summary=_SUMMARY, lifespan=lifespan)
    errors.install(app)
    app.add_middleware(LimitMiddleware)
    app.add_middleware(MetricsMiddleware)
    app.add_middleware(TracingMiddleware)
    app.add_middleware(DrainMiddleware)
    app.include_router(operations.router)
    for routes in _ROUTES:
        app.include_router(routes.router, dependencies=[Depends(query_parameters.refuse_unknown)])
    return app
