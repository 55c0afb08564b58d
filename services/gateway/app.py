"""The gateway as an ASGI application."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from services.gateway import errors
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
    files,
    kv,
    memories,
    observations,
    operations,
    scratch_stores,
    sessions,
    spend,
    transcript,
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

_ABOUT = "The memory of a fleet of agents: conversation, desk and long-term memory behind one door."


def create_app(settings: config.Settings | None = None) -> FastAPI:
    """Return the gateway; its stores are opened when it starts serving."""
    settings = settings or config.load()
    telemetry.set_up(settings, "gateway")

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_resources(settings) as resources:
            await rebuild_index.prepare_index(resources)
            prices.listed_prices(settings)  # a file that can't be read ends the process here
            app.state.resources = resources
            yield
        await asyncio.to_thread(traces.flush)

    app = FastAPI(title="Loci", version="1", summary=_ABOUT, lifespan=lifespan)
    errors.install(app)
    app.add_middleware(LimitMiddleware)
    app.add_middleware(MetricsMiddleware)
    app.add_middleware(TracingMiddleware)
    app.add_middleware(DrainMiddleware)
    # `transfer` first: its paths would read as ids of memories.
    for noun in (
        transfer,
        memories,
        working,
        observations,
        agents,
        sessions,
        kv,
        transcript,
        collections,
        files,
        scratch_stores,
        turns,
        feedback,
        directives,
        dreams,
        spend,
        budgets,
        users,
        operations,
    ):
        app.include_router(noun.router)
    return app
