"""Memories as other parts of the product change them."""

from sqlalchemy import func, update

from shared.memory.longterm import index_document, queries, save
from shared.memory.longterm.memory import Archiver
from shared.memory.longterm.table import memory as memory_table
from tests.agent import Json
from tests.conftest import Gateway


async def change_columns(gateway: Gateway, changes: dict[str, Json]) -> None:
    """Change memories in Postgres as a new version, and write their points."""
    tenant = gateway.tenant
    async with gateway.resources.postgres.for_tenant(tenant) as tx:
        for memory_id, columns in changes.items():
            is_archived = columns.pop("is_archived", False)
            values = columns | ({"archived_at": func.now()} if is_archived else {})
            statement = update(memory_table).where(memory_table.c.id == memory_id)
            await tx.execute(statement.values(version=memory_table.c.version + 1, **values))
        memories = await queries.read(tx, list(changes))
        jobs = await save.enqueue_jobs(tx, memories)
    documents = [index_document.document(memory) for memory in memories]
    await gateway.resources.index_writer.write_through(documents, jobs)


async def archive(gateway: Gateway, memory_id: str, *successor_ids: str) -> None:
    """Archive a memory as an enrichment or a dream does."""
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        await queries.archive(tx, [memory_id], Archiver.DREAM, "merged", successor_ids)
