"""Evaluations of sessions: what a model writes, and when the next ones are due."""

import json

from sqlalchemy import func, select

from shared.foundation.stages import Pipeline
from shared.jobs.table import job
from tests.conftest import Gateway

GOOD = json.dumps({"summary": "Ada asked for the tram.", "overall_quality": "good"})


async def evaluation_due_in(gateway: Gateway) -> float | None:
    """Return in how many seconds the scope's sessions are due for evaluation."""
    where = (job.c.tenant == gateway.tenant, job.c.pipeline == Pipeline.EVALUATION)
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        statement = select(func.extract("epoch", job.c.run_at - func.now())).where(*where)
        remaining = await tx.scalar(statement)
    return None if remaining is None else float(remaining)
