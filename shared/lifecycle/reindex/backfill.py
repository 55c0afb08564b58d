"""Enqueue index jobs for every record of a kind, for one generation, tenant by tenant and page by page."""

from collections.abc import AsyncIterator, Awaitable, Callable

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.observations import queries as observation_queries
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.turn import record_id_of
from shared.foundation.stages import RecordKind
from shared.infra import redis as redis_client
from shared.jobs import index_jobs
from shared.memory.longterm import maintenance_queries
from shared.memory.working import index_document as working_document
from shared.memory.working import queries as working_queries
from shared.memory.working.queries import WorkingMemory
from shared.platform.auth import queries as auth_queries
from shared.platform.resources import Resources

_PAGE_SIZE = 1000
_COUNT: dict[RecordKind, Callable[[AsyncConnection, str], Awaitable[int]]] = {
    RecordKind.MEMORY: maintenance_queries.count,
    RecordKind.TURN: turn_queries.count,
    RecordKind.OBSERVATION: observation_queries.count,
}
PageVersions = Callable[[AsyncConnection, str, str, int], Awaitable[dict[str, int]]]
_READ_PAGE: dict[RecordKind, PageVersions] = {
    RecordKind.MEMORY: maintenance_queries.all_versions,
    RecordKind.OBSERVATION: observation_queries.page_versions,
}


async def backfill(resources: Resources, kind: RecordKind, generation: int) -> int:
    """Enqueue an index job for every record of a kind, and return how many.

    Records that are written meanwhile get their jobs from their writers.
    """
    async with resources.postgres.across_tenants() as connection:
        tenants = await auth_queries.list_tenants(connection)
    job_count = 0
    for tenant in tenants:
        async for page in versions(resources, kind, tenant):
            async with resources.postgres.for_tenant(tenant) as connection:
                await index_jobs.enqueue_index_jobs(connection, tenant, kind, page, generation=generation)
            job_count += len(page)
    return job_count


async def count(resources: Resources, kind: RecordKind, tenant: str) -> int:
    """Return how many records of a kind a tenant has."""
    if kind is RecordKind.WORKING:
        with redis_client.failures_as_unavailable():
            return len(await working_queries.list_entries(_working_memory(resources, tenant)))
    async with resources.postgres.for_tenant(tenant) as connection:
        return await _COUNT[kind](connection, tenant)


async def versions(resources: Resources, kind: RecordKind, tenant: str) -> AsyncIterator[dict[str, int]]:
    """Yield a tenant's records of a kind in pages of record id → current version."""
    if kind is RecordKind.WORKING:
        with redis_client.failures_as_unavailable():
            infos = await working_queries.list_entries(_working_memory(resources, tenant))
        if infos:
            yield {working_document.record_id_of(info.key): working_document.version(info) for info in infos}
        return
    read_page = _READ_PAGE.get(kind)
    if read_page is None:
        pages = _turn_pages(resources, tenant)
    else:
        pages = _record_pages(resources, tenant, read_page)
    async for page in pages:
        yield page


def _working_memory(resources: Resources, tenant: str) -> WorkingMemory:
    return WorkingMemory(resources.redis, resources.settings, tenant)


async def _record_pages(
    resources: Resources, tenant: str, read_page: PageVersions
) -> AsyncIterator[dict[str, int]]:
    after = ""
    while True:
        async with resources.postgres.for_tenant(tenant) as connection:
            page = await read_page(connection, tenant, after, _PAGE_SIZE)
        if not page:
            return
        yield page
        after = max(page)


async def _turn_pages(resources: Resources, tenant: str) -> AsyncIterator[dict[str, int]]:
    after = ("", 0)
    while True:
        async with resources.postgres.for_tenant(tenant) as connection:
            turn_keys = await turn_queries.page_keys(connection, tenant, after, _PAGE_SIZE)
        if not turn_keys:
            return
        yield {record_id_of(*turn_key): turn_queries.VERSION for turn_key in turn_keys}
        after = turn_keys[-1]
