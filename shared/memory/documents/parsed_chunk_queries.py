"""Every statement on parsed chunks. Functions take the caller's transaction and never commit.

They are the text of a version whose file is read, until each is stored as a chunk. Nobody finds them.
"""

from collections.abc import Sequence

import orjson
from sqlalchemy import ColumnElement, delete, select, text

from shared.infra.postgres import tenant_filter
from shared.infra.transaction import Transaction
from shared.memory.documents.chunk import Chunk
from shared.memory.documents.document import Document
from shared.memory.documents.table import parsed_chunk

_INSERT = text(
    """
    INSERT INTO parsed_chunk (tenant, document_id, version, position, content, page, line_from, line_to)
    SELECT :tenant, :document_id, :version, r.position, r.content, r.page, r.line_from, r.line_to
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (position integer, content text, page integer,
                                                        line_from integer, line_to integer)
    """
)


async def insert(tx: Transaction, existing: Document, chunks: Sequence[Chunk]) -> None:
    """Insert parsed chunks of a locked document's latest version."""
    values = {"tenant": existing.tenant, "document_id": existing.id, "version": existing.version}
    await tx.execute(_INSERT, values | {"rows": _to_json(chunks)})


def _to_json(chunks: Sequence[Chunk]) -> str:
    rows = [
        {
            "position": chunk.position,
            "content": chunk.text,
            "page": chunk.page,
            "line_from": chunk.line_from,
            "line_to": chunk.line_to,
        }
        for chunk in chunks
    ]
    return orjson.dumps(rows).decode()


async def list_first(tx: Transaction, existing: Document, limit: int) -> list[Chunk]:
    """Return the first parsed chunks of a document's latest version that are not stored yet."""
    columns = [parsed_chunk.c[name] for name in ("content", "position", "page", "line_from", "line_to")]
    statement = select(*columns).where(*_of(existing), parsed_chunk.c.version == existing.version)
    rows = await tx.execute(statement.order_by(parsed_chunk.c.position).limit(limit))
    return [Chunk(*row) for row in rows]


async def remove_stored(tx: Transaction, existing: Document, last_position: int) -> None:
    """Delete the parsed chunks of a document's latest version up to a position: they are stored."""
    is_stored = (parsed_chunk.c.version == existing.version, parsed_chunk.c.position <= last_position)
    await tx.execute(delete(parsed_chunk).where(*_of(existing), *is_stored))


async def remove(tx: Transaction, existing: Document) -> None:
    """Delete all parsed chunks of a locked document, of whatever version."""
    await tx.execute(delete(parsed_chunk).where(*_of(existing)))


def _of(existing: Document) -> tuple[ColumnElement[bool], ...]:
    return tenant_filter(parsed_chunk, existing.tenant), parsed_chunk.c.document_id == existing.id
