"""The gateway as an ASGI application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from services.gateway import errors
from services.gateway.limits import Limited
from services.gateway.metrics import Measured
from services.gateway.routes import (
    directives,
    dreams,
    feedback,
    memories,
    operations,
    sessions,
    transfer,
    turns,
    users,
    working,
)
from shared import config, telemetry
from shared.reindex import rebuild
from shared.resources import open_resources

_ABOUT = "The memory of a fleet of agents: conversation, desk and long-term memory behind one door."


def create_app(settings: config.Settings | None = None) -> FastAPI:
    """Return the gateway; its stores are opened when it starts serving."""
    settings = settings or config.load()
    telemetry.set_up(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_resources(settings) as resources:
            await rebuild.prepare(resources)
            app.state.resources = resources
            yield

    app = FastAPI(title="Loci", version="1", summary=_ABOUT, lifespan=lifespan)
    errors.install(app)
    app.add_middleware(Limited)
    app.add_middleware(Measured)
    # `transfer` first: its paths would read as ids of memories.
    for noun in (
        transfer,
        memories,
        working,
        sessions,
        turns,
        feedback,
        directives,
        dreams,
        users,
        operations,
    ):
        app.include_router(noun.router)
    return app
