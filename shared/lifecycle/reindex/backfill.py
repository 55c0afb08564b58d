"""Make every record of a kind due for one generation of the index, tenant by tenant, page by page."""

from collections.abc import AsyncIterator, Awaitable, Callable

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.observations import queries as observation_queries
from shared.conversation.observations.table import observation as observation_table
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.table import turn as turn_table
from shared.conversation.turns.turn import record_id_of
from shared.foundation.stages import RecordKind
from shared.infra import redis as redis_client
from shared.infra.postgres import tenant_filter
from shared.jobs import index_jobs
from shared.memory.longterm import maintenance_queries
from shared.memory.longterm.table import memory as longterm_table
from shared.memory.working import index_document as working_document
from shared.memory.working import queries as working_queries
from shared.memory.working.queries import WorkingMemory
from shared.platform.auth import queries as auth_queries
from shared.platform.resources import Resources

_PAGE = 1000
_TABLES = {
    RecordKind.MEMORY: longterm_table,
    RecordKind.TURN: turn_table,
    RecordKind.OBSERVATION: observation_table,
}
PageVersions = Callable[[AsyncConnection, str, str, int], Awaitable[dict[str, int]]]
_BY_REF: dict[RecordKind, PageVersions] = {
    RecordKind.MEMORY: maintenance_queries.all_versions,
    RecordKind.OBSERVATION: observation_queries.all_versions,
}


async def backfill(resources: Resources, kind: RecordKind, generation: int) -> int:
    """Write index rows for every record that was there before the generation; return how many."""
    async with resources.postgres.across_tenants() as connection:
        tenants = await auth_queries.list_tenants(connection)
    rows = 0
    for tenant in tenants:
        async for page in versions(resources, kind, tenant):
            async with resources.postgres.for_tenant(tenant) as connection:
                await index_jobs.enqueue_index_jobs(connection, tenant, kind, page, generation=generation)
            rows += len(page)
    return rows


async def count(resources: Resources, kind: RecordKind, tenant: str) -> int:
    """Count a tenant's records of a kind."""
    if kind is RecordKind.WORKING:
        with redis_client.failures_as_unavailable():
            return len(
                await working_queries.list_entries(WorkingMemory(resources.redis, resources.settings, tenant))
            )
    table = _TABLES[kind]
    async with resources.postgres.for_tenant(tenant) as connection:
        mine = select(func.count()).select_from(table).where(tenant_filter(table, tenant))
        return int(await connection.scalar(mine) or 0)


async def versions(resources: Resources, kind: RecordKind, tenant: str) -> AsyncIterator[dict[str, int]]:
    """Page through a tenant's records of a kind, as ref → current version."""
    if kind is RecordKind.WORKING:
        table = WorkingMemory(resources.redis, resources.settings, tenant)
        with redis_client.failures_as_unavailable():
            listed = await working_queries.list_entries(table)
        if listed:
            yield {
                working_document.record_id_of(one.key): round(one.stored_at.timestamp() * 1000)
                for one in listed
            }
        return
    by_ref = _BY_REF.get(kind)
    pages = _turns(resources, tenant) if by_ref is None else _by_ref(resources, tenant, by_ref)
    async for page in pages:
        yield page


async def _by_ref(resources: Resources, tenant: str, read: PageVersions) -> AsyncIterator[dict[str, int]]:
    after = ""
    while True:
        async with resources.postgres.for_tenant(tenant) as connection:
            page = await read(connection, tenant, after, _PAGE)
        if not page:
            return
        yield page
        after = max(page)


async def _turns(resources: Resources, tenant: str) -> AsyncIterator[dict[str, int]]:
    after = ("", 0)
    while True:
        async with resources.postgres.for_tenant(tenant) as connection:
            places = await turn_queries.page_keys(connection, tenant, after, _PAGE)
        if not places:
            return
        yield {record_id_of(*place): turn_queries.VERSION for place in places}
        after = places[-1]
