"""Make every record of a kind due for one generation of the index, tenant by tenant, page by page."""

from collections.abc import AsyncIterator, Awaitable, Callable

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.observations import queries as observation_queries
from shared.conversation.observations.table import observation as observation_table
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.table import turn as turn_table
from shared.conversation.turns.turn import ref_of
from shared.foundation.stages import Kind
from shared.infra import redis as redis_client
from shared.infra.postgres import owned_by
from shared.jobs import index_jobs
from shared.memory.longterm import maintenance_queries
from shared.memory.longterm.table import entry as longterm_table
from shared.memory.working import index_document as working_document
from shared.memory.working import queries as working_queries
from shared.memory.working.queries import Desk
from shared.platform.auth import queries as auth_queries
from shared.platform.resources import Resources

_PAGE = 1000
_TABLES = {
    Kind.MEMORY: longterm_table,
    Kind.TURN: turn_table,
    Kind.OBSERVATION: observation_table,
}
ByRef = Callable[[AsyncConnection, str, str, int], Awaitable[dict[str, int]]]
_BY_REF: dict[Kind, ByRef] = {
    Kind.MEMORY: maintenance_queries.all_versions,
    Kind.OBSERVATION: observation_queries.all_versions,
}


async def backfill(resources: Resources, kind: Kind, generation: int) -> int:
    """Write index rows for every record that was there before the generation; return how many."""
    async with resources.postgres.fleet() as connection:
        tenants = await auth_queries.tenants(connection)
    rows = 0
    for tenant in tenants:
        async for page in versions(resources, kind, tenant):
            async with resources.postgres.tenant(tenant) as connection:
                await index_jobs.enqueue_index(connection, tenant, kind, page, generation=generation)
            rows += len(page)
    return rows


async def count(resources: Resources, kind: Kind, tenant: str) -> int:
    """Count a tenant's records of a kind."""
    if kind is Kind.DESK:
        with redis_client.translated():
            return len(await working_queries.listings(Desk(resources.redis, resources.settings, tenant)))
    table = _TABLES[kind]
    async with resources.postgres.tenant(tenant) as connection:
        mine = select(func.count()).select_from(table).where(owned_by(table, tenant))
        return int(await connection.scalar(mine) or 0)


async def versions(resources: Resources, kind: Kind, tenant: str) -> AsyncIterator[dict[str, int]]:
    """Page through a tenant's records of a kind, as ref → current version."""
    if kind is Kind.DESK:
        table = Desk(resources.redis, resources.settings, tenant)
        with redis_client.translated():
            listed = await working_queries.listings(table)
        if listed:
            yield {
                working_document.ref_of(one.key): round(one.stored_at.timestamp() * 1000) for one in listed
            }
        return
    by_ref = _BY_REF.get(kind)
    pages = _turns(resources, tenant) if by_ref is None else _by_ref(resources, tenant, by_ref)
    async for page in pages:
        yield page


async def _by_ref(resources: Resources, tenant: str, read: ByRef) -> AsyncIterator[dict[str, int]]:
    after = ""
    while True:
        async with resources.postgres.tenant(tenant) as connection:
            page = await read(connection, tenant, after, _PAGE)
        if not page:
            return
        yield page
        after = max(page)


async def _turns(resources: Resources, tenant: str) -> AsyncIterator[dict[str, int]]:
    after = ("", 0)
    while True:
        async with resources.postgres.tenant(tenant) as connection:
            places = await turn_queries.all_refs(connection, tenant, after, _PAGE)
        if not places:
            return
        yield {ref_of(*place): turn_queries.VERSION for place in places}
        after = places[-1]
