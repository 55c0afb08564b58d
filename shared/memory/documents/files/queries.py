"""Every statement on files. Functions take the caller's transaction, never commit."""

from dataclasses import dataclass

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert

from shared.infra.postgres import tenant_filter
from shared.infra.transaction import Transaction
from shared.memory.documents.files.table import document_file as file_table
from shared.memory.documents.files.table import document_file_part as part_table


@dataclass(frozen=True, slots=True)
class StoredFile:
    """Where a file lies, and its length."""

    is_in_s3: bool
    size_bytes: int


async def insert_file(tx: Transaction, name: str, size_bytes: int, *, is_in_s3: bool) -> bool:
    """Insert the row of a new file; return False if there is a file of this name."""
    values = {"tenant": tx.tenant, "name": name, "is_in_s3": is_in_s3, "size_bytes": size_bytes}
    statement = insert(file_table).values(values).on_conflict_do_nothing()
    return (await tx.execute(statement)).rowcount == 1


async def insert_part(tx: Transaction, name: str, position: int, content: bytes) -> None:
    """Insert a part of a file that lies in Postgres."""
    values = {"tenant": tx.tenant, "name": name, "position": position, "content": content}
    await tx.execute(insert(part_table).values(values))


async def find_file(tx: Transaction, name: str) -> StoredFile | None:
    """Return where a file lies, or None if there is none."""
    columns = (file_table.c.is_in_s3, file_table.c.size_bytes)
    where = (tenant_filter(file_table, tx.tenant), file_table.c.name == name)
    row = (await tx.execute(select(*columns).where(*where))).one_or_none()
    return None if row is None else StoredFile(row.is_in_s3, row.size_bytes)


async def find_part(tx: Transaction, name: str, position: int) -> bytes | None:
    """Return a part of a file that lies in Postgres, or None if it has ended."""
    where = (
        tenant_filter(part_table, tx.tenant),
        part_table.c.name == name,
        part_table.c.position == position,
    )
    content: bytes | None = await tx.scalar(select(part_table.c.content).where(*where))
    return content


async def delete_file(tx: Transaction, name: str) -> None:
    """Delete the row of a file, and its parts with it."""
    where = (tenant_filter(file_table, tx.tenant), file_table.c.name == name)
    await tx.execute(delete(file_table).where(*where))
