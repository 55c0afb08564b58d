"""When a scope's next run is due, and the runs that it has had."""

from datetime import datetime
from typing import Any

from sqlalchemy import select

from shared.foundation.stages import DREAM_START
from shared.jobs.table import job
from tests.conftest import Gateway


async def due_at(model_gateway: Gateway) -> datetime | None:
    is_start = (job.c.stage == DREAM_START.name) & (job.c.pipeline == DREAM_START.pipeline)
    where = (job.c.tenant == model_gateway.tenant, is_start)
    async with model_gateway.resources.postgres.for_tenant(model_gateway.tenant) as tx:
        run_at: datetime | None = await tx.scalar(select(job.c.run_at).where(*where))
    return run_at


async def runs(model_gateway: Gateway) -> list[dict[str, Any]]:
    return list((await model_gateway.client.get("/v1/dreams")).json()["results"])
