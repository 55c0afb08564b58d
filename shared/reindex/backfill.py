"""Make every record of a kind due for one generation of the index, tenant by tenant, page by page."""

from collections.abc import AsyncIterator, Awaitable, Callable

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.access import store as access
from shared.clients import redis
from shared.clients.postgres import owned_by
from shared.conversation import store as conversation
from shared.conversation.record import ref_of
from shared.conversation.table import turn as turn_table
from shared.longterm import store as longterm
from shared.longterm.table import entry as longterm_table
from shared.observations import store as observations
from shared.observations.table import observation as observation_table
from shared.resources import Resources
from shared.stages import Kind
from shared.work import store as work
from shared.working import document as desk_document
from shared.working import store as desk
from shared.working.store import Desk

_PAGE = 1000
_TABLES = {
    Kind.MEMORY: longterm_table,
    Kind.TURN: turn_table,
    Kind.OBSERVATION: observation_table,
}
ByRef = Callable[[AsyncConnection, str, str, int], Awaitable[dict[str, int]]]
_BY_REF: dict[Kind, ByRef] = {
    Kind.MEMORY: longterm.all_versions,
    Kind.OBSERVATION: observations.all_versions,
}


async def backfill(resources: Resources, kind: Kind, generation: int) -> int:
    """Write index rows for every record that was there before the generation; return how many."""
    async with resources.postgres.fleet() as connection:
        tenants = await access.tenants(connection)
    rows = 0
    for tenant in tenants:
        async for page in versions(resources, kind, tenant):
            async with resources.postgres.tenant(tenant) as connection:
                await work.enqueue_index(connection, tenant, kind, page, generation=generation)
            rows += len(page)
    return rows


async def count(resources: Resources, kind: Kind, tenant: str) -> int:
    """Count a tenant's records of a kind."""
    if kind is Kind.DESK:
        with redis.translated():
            return len(await desk.listings(Desk(resources.redis, resources.settings, tenant)))
    table = _TABLES[kind]
    async with resources.postgres.tenant(tenant) as connection:
        mine = select(func.count()).select_from(table).where(owned_by(table, tenant))
        return int(await connection.scalar(mine) or 0)


async def versions(resources: Resources, kind: Kind, tenant: str) -> AsyncIterator[dict[str, int]]:
    """Page through a tenant's records of a kind, as ref → current version."""
    if kind is Kind.DESK:
        table = Desk(resources.redis, resources.settings, tenant)
        with redis.translated():
            listed = await desk.listings(table)
        if listed:
            yield {desk_document.ref_of(one.key): round(one.stored_at.timestamp() * 1000) for one in listed}
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
            places = await conversation.all_refs(connection, tenant, after, _PAGE)
        if not places:
            return
        yield {ref_of(*place): conversation.VERSION for place in places}
        after = places[-1]
