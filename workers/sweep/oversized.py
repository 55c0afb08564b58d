"""Make memories due for compaction that are too long for a context: imported, merged, saved as they are."""

from shared.foundation.stages import ENRICH, RecordKind
from shared.jobs import queries as job_queries
from shared.memory.longterm import maintenance_queries
from shared.platform.resources import Resources

_BATCH = 100


async def enqueue_oversized(resources: Resources, tenant: str) -> int:
    """Enqueue oversized memories of a tenant, and return how many. Without a model there is nobody to ask."""
    if resources.language_model is None:
        return 0
    max_chars = resources.settings.llm_compact_from
    async with resources.postgres.for_tenant(tenant) as tx:
        versions = await maintenance_queries.list_oversized(tx, max_chars, _BATCH)
        await job_queries.enqueue_missing(tx, RecordKind.MEMORY, ENRICH, versions)
    return len(versions)
