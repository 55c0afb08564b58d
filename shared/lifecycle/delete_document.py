"""Delete a document with its file and its chunks, or the chunks of versions that it no longer has."""

from collections.abc import Collection, Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation.content import Subject
from shared.foundation.scope import Caller
from shared.foundation.stages import Pipeline, RecordKind
from shared.jobs import queries as job_queries
from shared.lifecycle import deletion, removal
from shared.lifecycle.deletion import Deletion
from shared.lifecycle.removal import Removal
from shared.memory.documents import chunk_queries, queries, upload
from shared.memory.documents.document import Document
from shared.memory.documents.stored_files import FILES
from shared.platform.resources import Resources
from shared.search.index import embedding_cache
from shared.search.text import indexed_text

DROPPED_CHUNKS = 1000
"""Chunks of replaced versions that are deleted in one transaction."""
_CHUNKS = removal.points_of(RecordKind.DOCUMENT_CHUNK)


async def delete_document(
    resources: Resources, caller: Caller, document_id: str, source: str | None = None
) -> bool:
    """Delete a document for good; return whether there was one. Raises errors.Forbidden for a bound key.

    With a source, a document that has other sources stays with these, and one without that source as it is.
    """
    upload.require_right(caller)
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        document = await queries.get(connection, caller.tenant, document_id, lock=True)
        if document is None or (source is not None and source not in document.sources):
            return False
        if source is not None and len(document.sources) > 1:
            await queries.remove_source(connection, document, source)
            return True
        rest = await _delete(connection, document)
    await removal.work_off(resources, rest)
    return True


async def _delete(connection: AsyncConnection, document: Document) -> Removal:
    tenant, chunks = document.tenant, await chunk_queries.list_other_versions(connection, document, ())
    rows = Deletion(tenant)
    rows.subjects[Subject.DOCUMENT] = [document.id]
    rows.add_items(_CHUNKS, [chunk_id for chunk_id, _ in chunks])
    rows.add_items(FILES, [document.file_id])
    rows.embedding_texts += _embedding_texts(chunks)
    await job_queries.cancel(connection, tenant, RecordKind.DOCUMENT, [document.id], Pipeline.DOCUMENT)
    _, rest = await deletion.carry_out(connection, rows)
    return rest


async def drop_other_versions(
    connection: AsyncConnection, document: Document, kept_versions: Collection[int]
) -> Removal | None:
    """Delete up to DROPPED_CHUNKS chunks of a locked document of other versions than these.

    Return what is to be removed from Qdrant after the commit, or None if there is no such chunk. A version of
    many chunks takes several calls, each in a transaction of its own: nobody waits long for the document.
    """
    tenant = document.tenant
    chunks = await chunk_queries.list_other_versions(connection, document, kept_versions, DROPPED_CHUNKS)
    if not chunks:
        return None
    ids = [chunk_id for chunk_id, _ in chunks]
    await chunk_queries.delete_chunks(connection, tenant, ids)
    rest = await removal.begin(connection, tenant, {_CHUNKS: ids})
    await embedding_cache.delete_cached(connection, tenant, _embedding_texts(chunks))
    return rest


def _embedding_texts(chunks: Sequence[tuple[str, str]]) -> list[str]:
    return [indexed_text.embedding_text(text) for _, text in chunks]
