"""Every statement on documents. Functions take the caller's transaction and never commit.

Uploads lock all documents of the tenant first (`lock_documents`), because what they store depends on what
others have uploaded. A worker and a deletion lock the document, then its jobs.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import PurePath

from sqlalchemy import ColumnElement, func, insert, select, text, update

from shared.foundation.origin import Origin
from shared.infra.postgres import advisory_lock_key, is_any_of, keyset_after, tenant_filter
from shared.infra.transaction import Transaction
from shared.memory.documents.document import Document, DocumentState, NewFile
from shared.memory.documents.parsed import ParsedFile
from shared.memory.documents.table import document

_NOW = func.clock_timestamp()
_Values = Mapping[str, str | int | Sequence[str] | None]
_NOT_PARSED: _Values = {
    "state": DocumentState.PENDING,
    "reason_code": None,
    "reason": None,
    "method": None,
    "chunk_count": None,
    "stored_chunks": 0,
}


async def lock_documents(tx: Transaction) -> None:
    """Lock a tenant's documents against other uploads until the transaction ends."""
    await tx.execute(select(func.pg_advisory_xact_lock(advisory_lock_key("documents", tx.tenant))))


async def get(tx: Transaction, document_id: str, *, lock: bool = False) -> Document | None:
    """Return a document, or None; with `lock`, it stays as it is until the transaction ends."""
    return await _find(tx, document.c.id == document_id, lock=lock)


async def find_by_source(tx: Transaction, source: str) -> Document | None:
    """Return and lock the document that comes from this source, if only besides others."""
    found = await _find(tx, document.c.source == source, lock=True)
    if found is not None:
        return found
    is_other = document.c.other_sources.contains([source])
    return await _find(tx, (document.c.other_sources != text("'{}'")) & is_other, lock=True)


async def find_by_sha256(tx: Transaction, sha256: str) -> Document | None:
    """Return and lock the oldest document whose latest version has these bytes."""
    return await _find(tx, document.c.sha256 == sha256, lock=True)


async def list_former(tx: Transaction, sources: Sequence[str]) -> list[Document]:
    """Return and lock the documents that one of these sources has left, and that are found until then."""
    where = (tenant_filter(document, tx.tenant), is_any_of(document.c.former_source, sources))
    statement = select(document).where(*where).order_by(document.c.id).with_for_update()
    return [Document.from_row(row) for row in (await tx.execute(statement)).mappings()]


async def _find(tx: Transaction, condition: ColumnElement[bool], *, lock: bool) -> Document | None:
    statement = select(document).where(tenant_filter(document, tx.tenant), condition)
    statement = statement.order_by(document.c.created_at, document.c.id).limit(1)
    rows = await tx.execute(statement.with_for_update() if lock else statement)
    row = rows.mappings().one_or_none()
    return None if row is None else Document.from_row(row)


async def list_page(
    tx: Transaction, limit: int, after: tuple[datetime, str] | None, state: DocumentState | None
) -> list[Document]:
    """Return documents, newest first. `after` is the (created_at, id) of the last one of the page before."""
    conditions = [tenant_filter(document, tx.tenant)]
    if state is not None:
        conditions.append(document.c.state == state)
    if after is not None:
        created_at, document_id = after
        keys = ((document.c.created_at, created_at, True), (document.c.id, document_id, False))
        conditions.append(keyset_after(*keys))
    newest_first = (document.c.created_at.desc(), document.c.id)
    rows = await tx.execute(select(document).where(*conditions).order_by(*newest_first).limit(limit))
    return [Document.from_row(row) for row in rows.mappings()]


async def insert_document(
    tx: Transaction, document_id: str, new: NewFile, file_id: str, origin: Origin
) -> Document:
    """Insert a document whose file is stored under `file_id`."""
    values = {"tenant": tx.tenant, "id": document_id, "file_id": file_id, **_NOT_PARSED, **_file_columns(new)}
    values |= origin.columns()
    statement = insert(document).values(title=new.title, source=new.source, **values).returning(document)
    return Document.from_row((await tx.execute(statement)).mappings().one())


async def replace_file(
    tx: Transaction, existing: Document, new: NewFile, file_id: str, origin: Origin
) -> Document:
    """Give a locked document another file, as its next version. The searchable one stays so."""
    version = existing.version + 1
    values = {"file_id": file_id, "version": version, **_NOT_PARSED, **_file_columns(new)}
    values |= origin.columns()
    if new.title is not None:
        values["title"] = new.title
    return await _update(tx, existing, values)


def _file_columns(new: NewFile) -> dict[str, str | int | None]:
    return {
        "file_name": new.file_name,
        "declared_type": new.declared_type,
        "size_bytes": new.size_bytes,
        "sha256": new.sha256,
    }


async def add_source(tx: Transaction, existing: Document, source: str) -> Document:
    """Note that a locked document also comes from this source, which has none yet."""
    return await _set_sources(tx, existing, [*existing.sources, source], None)


async def remove_source(tx: Transaction, existing: Document, source: str) -> Document:
    """Note that a locked document no longer comes from one of its sources.

    If its file is named so, it is named as the first source that is left: another file has that name now.
    """
    rest = [name for name in existing.sources if name != source]
    if rest and existing.file_name == source:
        existing = await _update(tx, existing, {"file_name": PurePath(rest[0]).name or rest[0]})
    return await _set_sources(tx, existing, rest, None if rest else source)


async def keep(tx: Transaction, existing: Document) -> Document:
    """Note that a locked document is to stay, because its file was uploaded again."""
    return await _set_sources(tx, existing, existing.sources, None)


async def _set_sources(
    tx: Transaction, existing: Document, sources: list[str], former_source: str | None
) -> Document:
    first, others = (sources[0] if sources else None), sources[1:]
    values = {"source": first, "other_sources": others, "former_source": former_source}
    return await _update(tx, existing, values)


async def begin_again(tx: Transaction, existing: Document) -> Document:
    """Have the file of a locked document read anew, as its next version. The searchable one stays so.

    A version is never used again: what was left of it in the index may be removed much later.
    """
    return await _update(tx, existing, {**_NOT_PARSED, "version": existing.version + 1})


async def mark_processing(tx: Transaction, existing: Document) -> Document:
    """Note that a worker parses a locked document."""
    return await _update(tx, existing, {"state": DocumentState.PROCESSING})


async def note_parsed(tx: Transaction, existing: Document, what: ParsedFile, chunk_count: int) -> Document:
    """Note what a locked document is and how its text was taken, now that all of it is stored as parsed."""
    values = {
        "method": what.method,
        "parsed_title": what.title,
        "media_type": what.media_type,
        "chunk_count": chunk_count,
    }
    return await _update(tx, existing, values)


async def note_stored(tx: Transaction, existing: Document, stored_chunks: int) -> Document:
    """Note how many chunks of the latest version of a locked document are stored."""
    return await _update(tx, existing, {"stored_chunks": stored_chunks})


async def make_searchable(tx: Transaction, existing: Document) -> Document:
    """Let search find the latest version of a locked document, and no other."""
    version = existing.version
    return await _update(tx, existing, {"searchable_version": version, "state": DocumentState.READY})


async def fail(tx: Transaction, existing: Document, reason_code: str, reason: str) -> Document:
    """Note why the latest version of a locked document can't be searched."""
    failed = {"state": DocumentState.FAILED, "reason_code": reason_code, "reason": reason}
    return await _update(tx, existing, {**_NOT_PARSED, **failed})


async def _update(tx: Transaction, existing: Document, values: _Values) -> Document:
    where = (tenant_filter(document, existing.tenant), document.c.id == existing.id)
    statement = update(document).where(*where).values(updated_at=_NOW, **values).returning(document)
    return Document.from_row((await tx.execute(statement)).mappings().one())
