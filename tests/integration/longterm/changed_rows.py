"""Memories as other parts of the product change them."""

from sqlalchemy import func, update

from shared.memory.longterm import queries, save
from shared.memory.longterm.memory import Archiver
from shared.memory.longterm.table import memory as memory_table
from tests.agent import Json
from tests.conftest import Gateway


async def change_columns(gateway: Gateway, changes: dict[str, Json]) -> None:
    """Change memories in Postgres as a new version, and write their points."""
    async with gateway.resources.transaction(gateway.tenant) as tx:
        for memory_id, columns in changes.items():
            is_archived = columns.pop("is_archived", False)
            values = columns | ({"archived_at": func.now()} if is_archived else {})
            statement = update(memory_table).where(memory_table.c.id == memory_id)
            await tx.execute(statement.values(version=memory_table.c.version + 1, **values))
        await save.index(tx, await queries.read(tx, list(changes)))


async def archive(gateway: Gateway, memory_id: str, *successor_ids: str) -> None:
    """Archive a memory as an enrichment or a dream does."""
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        await queries.archive(tx, [memory_id], Archiver.DREAM, "merged", successor_ids)
