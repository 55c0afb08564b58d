"""Make the summaries of skills due that came without one, and for which nobody was asked."""

from shared.foundation.stages import SUMMARIZE_SKILL, RecordKind
from shared.jobs import queries as job_queries
from shared.memory.skills import summary_queries
from shared.platform.resources import Resources

_BATCH = 100


async def enqueue_missing_summaries(resources: Resources, tenant: str) -> int:
    """Enqueue such skills of a tenant, and return how many. Without a model there is nobody to ask."""
    if resources.language_model is None:
        return 0
    async with resources.postgres.for_tenant(tenant) as tx:
        versions = await summary_queries.list_missing(tx, _BATCH)
        await job_queries.enqueue_missing(tx, RecordKind.SKILL, SUMMARIZE_SKILL, versions)
    return len(versions)
