"""Make every record of a kind due for one generation of the index, tenant by tenant, page by page."""

from collections.abc import AsyncIterator

from sqlalchemy import func, select

from shared.access import store as access
from shared.clients import redis
from shared.clients.postgres import owned_by
from shared.conversation import store as conversation
from shared.conversation.record import ref_of
from shared.conversation.table import turn as turn_table
from shared.longterm import store as longterm
from shared.longterm.table import entry as longterm_table
from shared.resources import Resources
from shared.stages import Kind
from shared.work import store as work
from shared.working import document as desk_document
from shared.working import store as desk
from shared.working.store import Desk

_PAGE = 1000


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
    table = longterm_table if kind is Kind.MEMORY else turn_table
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
    pages = _memories if kind is Kind.MEMORY else _turns
    async for page in pages(resources, tenant):
        yield page


async def _memories(resources: Resources, tenant: str) -> AsyncIterator[dict[str, int]]:
    after = ""
    while True:
        async with resources.postgres.tenant(tenant) as connection:
            page = await longterm.all_versions(connection, tenant, after, _PAGE)
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
