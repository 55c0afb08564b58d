"""Every statement on the chunks of documents. Functions take the caller's transaction and never commit.

A chunk whose document is gone waits for its deletion: no function but those for that returns it.
"""

from collections.abc import Collection, Sequence
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Select, bindparam, delete, func, select, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import Text

from shared.foundation.stages import Stage
from shared.infra.postgres import is_any_of, tenant_filter
from shared.infra.transaction import Transaction
from shared.memory.documents import index_document
from shared.memory.documents.document import Document, DocumentChunk
from shared.memory.documents.table import document, document_chunk
from shared.search.index.points import IndexDocument
from shared.search.text import indexed_text, tsvector

_INSERT = text(
    """
    INSERT INTO document_chunk (tenant, id, document_id, version, position, content, page, line_from, line_to,
                                search_terms)
    SELECT :tenant, r.id, :document_id, :version, r.position, r.content, r.page, r.line_from, r.line_to,
           array_to_tsvector(ARRAY(SELECT jsonb_array_elements_text(r.terms)))
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (id text, position integer, content text, page integer,
                                                        line_from integer, line_to integer, terms jsonb)
    ON CONFLICT DO NOTHING RETURNING id
    """
)
_COUNT_UNINDEXED = text(
    """
    SELECT count(*) FROM document_chunk c
    JOIN job w ON w.tenant = c.tenant AND w.kind = 'document_chunk' AND w.record_id = c.id
    JOIN index_generation g ON g.id = w.generation AND g.state = 'live'
    WHERE c.tenant = :tenant AND c.document_id = :document_id AND c.version = :version
      AND w.pipeline = 'index' AND w.stage = ANY (:stages) AND w.dead_at IS NULL
    """
).bindparams(bindparam("stages", type_=ARRAY(Text)))
_TITLE = func.coalesce(document.c.title, document.c.parsed_title, document.c.file_name).label("title")
_COLUMNS = (
    *(document_chunk.c[name] for name in ("tenant", "id", "document_id", "content", "page")),
    *(document_chunk.c.line_from, document_chunk.c.line_to, document.c.created_at, _TITLE),
)


def row_of(chunk_id: str, position: int, content: str, **place: int | None) -> dict[str, Any]:
    """Return a chunk as `insert_chunks` takes it. It takes as long as splitting the text into words."""
    return {
        "id": chunk_id,
        "position": position,
        "content": content,
        "terms": tsvector.terms_of(indexed_text.keyword_text(content)),
        **place,
    }


async def insert_chunks(tx: Transaction, existing: Document, rows: Sequence[dict[str, Any]]) -> list[str]:
    """Insert chunks of a document's latest version; return the ids of those that were not there before."""
    values = {"tenant": existing.tenant, "document_id": existing.id, "version": existing.version}
    inserted = await tx.scalars(_INSERT, values | {"rows": orjson.dumps(list(rows)).decode()})
    return list(inserted.all())


async def count_unindexed(tx: Transaction, existing: Document, stages: Sequence[Stage]) -> int:
    """Return how many index jobs of a document's latest version are in one of these stages, and not dead."""
    names = {"tenant": existing.tenant, "document_id": existing.id, "version": existing.version}
    values = names | {"stages": [stage.name for stage in stages]}
    return int(await tx.scalar(_COUNT_UNINDEXED, values) or 0)


async def list_other_versions(
    tx: Transaction, document_id: str, kept_versions: Collection[int], limit: int | None = None
) -> list[tuple[str, str]]:
    """Return up to `limit` chunks of a document of other versions than these, as (id, content).

    The document itself may be gone.
    """
    where = (
        tenant_filter(document_chunk, tx.tenant),
        document_chunk.c.document_id == document_id,
        document_chunk.c.version.not_in(kept_versions),
    )
    place = (document_chunk.c.version, document_chunk.c.position)
    statement = select(document_chunk.c.id, document_chunk.c.content).where(*where)
    rows = await tx.execute(statement.order_by(*place).limit(limit))
    return [(row.id, row.content) for row in rows]


async def has_other_versions(tx: Transaction, existing: Document, kept_versions: Collection[int]) -> bool:
    """Tell whether a document has chunks of other versions than these."""
    found = await list_other_versions(tx, existing.id, kept_versions, limit=1)
    return bool(found)


async def delete_chunks(tx: Transaction, ids: Sequence[str]) -> None:
    """Delete chunks."""
    where = (tenant_filter(document_chunk, tx.tenant), is_any_of(document_chunk.c.id, ids))
    await tx.execute(delete(document_chunk).where(*where))


def _is_of_document() -> ColumnElement[bool]:
    return (document.c.tenant == document_chunk.c.tenant) & (document.c.id == document_chunk.c.document_id)


def _has_document(tenant: str) -> tuple[ColumnElement[bool], ...]:
    return tenant_filter(document_chunk, tenant), select(document.c.id).where(_is_of_document()).exists()


def _with_document() -> Select[Any]:
    return select(*_COLUMNS).join(document, _is_of_document())


def _is_searchable(tenant: str) -> tuple[ColumnElement[bool], ...]:
    is_switched_to = document.c.searchable_version == document_chunk.c.version
    return tenant_filter(document_chunk, tenant), is_switched_to


async def list_searchable(tx: Transaction, ids: Sequence[str]) -> list[DocumentChunk]:
    """Return those of these chunks that are of the searchable version of their document."""
    where = (*_is_searchable(tx.tenant), is_any_of(document_chunk.c.id, ids))
    rows = await tx.execute(_with_document().where(*where))
    return [DocumentChunk(**row) for row in rows.mappings()]


async def list_matching(tx: Transaction, terms: Sequence[str], limit: int) -> list[DocumentChunk]:
    """Return searchable chunks that contain any of the terms, best match first."""
    if not terms:
        return []
    matches, rank = tsvector.matches_any(document_chunk.c.search_terms, terms)
    statement = _with_document().where(*_is_searchable(tx.tenant), matches)
    rows = await tx.execute(statement.order_by(rank.desc(), document_chunk.c.id).limit(limit))
    return [DocumentChunk(**row) for row in rows.mappings()]


async def load_documents(tx: Transaction, record_ids: Sequence[str]) -> list[IndexDocument]:
    """Return the index documents of a tenant's chunks, by record id, whether searchable yet or not."""
    where = (tenant_filter(document_chunk, tx.tenant), is_any_of(document_chunk.c.id, record_ids))
    rows = await tx.execute(_with_document().where(*where))
    return [index_document.document(DocumentChunk(**row)) for row in rows.mappings()]


async def versions(tx: Transaction, record_ids: Sequence[str]) -> dict[str, int]:
    """Return the index version of each of these chunks that exists, by id."""
    where = (*_has_document(tx.tenant), is_any_of(document_chunk.c.id, record_ids))
    rows = await tx.scalars(select(document_chunk.c.id).where(*where))
    return dict.fromkeys(rows, index_document.VERSION)


async def count(tx: Transaction) -> int:
    """Return the number of a tenant's chunks."""
    statement = select(func.count()).select_from(document_chunk).where(*_has_document(tx.tenant))
    return int(await tx.scalar(statement) or 0)


async def page_versions(tx: Transaction, after: str, limit: int) -> dict[str, int]:
    """Return one page of a tenant's chunks, ordered by id, as id → index version."""
    where = (*_has_document(tx.tenant), document_chunk.c.id > after)
    rows = await tx.scalars(
        select(document_chunk.c.id).where(*where).order_by(document_chunk.c.id).limit(limit)
    )
    return dict.fromkeys(rows, index_document.VERSION)
