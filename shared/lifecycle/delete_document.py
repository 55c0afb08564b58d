"""Delete a document with its file and its chunks, or the chunks of versions that it no longer has.

The row of the document goes at once, and with it all that a caller could read. Of a long one, most chunks are
left to the job that removes points, some at a time; the receipt says `pending` until it is done.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import uuid_utils

from shared.foundation import stages
from shared.foundation.content import Subject
from shared.foundation.scope import Caller
from shared.foundation.stages import Pipeline, RecordKind
from shared.infra.transaction import Transaction
from shared.jobs import queries as job_queries
from shared.jobs import removals
from shared.lifecycle import erasure, erasure_queries, removal
from shared.lifecycle.erased_document import CHUNKS, ErasedDocument, embedding_texts
from shared.lifecycle.removal import Removal
from shared.memory.documents import chunk_queries, queries
from shared.memory.documents.document import Document
from shared.memory.documents.stored_files import FILES
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area
from shared.platform.resources import Resources
from shared.search.index import embedding_cache

DROPPED_CHUNKS = 1000
"""Chunks that are deleted in one transaction: of replaced versions, and with a document."""


@dataclass(frozen=True, slots=True)
class DeletedDocument:
    """Whether there was a document or one of its sources to delete, and the receipt of a document's deletion.

    `state` is `pending` while chunks, points or the file are left, which nobody finds any more.
    """

    id: str
    deleted: bool
    state: str = "done"
    erasure_id: str | None = None


async def delete_document(
    resources: Resources, caller: Caller, document_id: str, source: str | None = None
) -> DeletedDocument:
    """Delete a document for good, if there is one. Raises errors.Forbidden for a bound key.

    With a source, a document that has other sources stays with these, and one without that source as it is.
    """
    rights.require_area(caller, Area.TENANT, Action.WRITE)
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        document = await queries.get(tx, document_id, lock=True)
        if document is None or (source is not None and source not in document.sources):
            return DeletedDocument(document_id, deleted=False)
        if source is not None and len(document.sources) > 1:
            await queries.remove_source(tx, document, source)
            await delete_former(tx, [source])
            return DeletedDocument(document_id, deleted=True)
        rest, is_complete = await delete_rows(tx, document)
        await delete_former(tx, document.sources)
    if is_complete:
        await removal.work_off(resources, rest)
    else:
        resources.publisher.wake(stages.REMOVE)
    receipt = await erasure.read_receipt(resources, caller.tenant, rest.operation_id)
    return DeletedDocument(document_id, deleted=True, state=receipt["state"], erasure_id=receipt["id"])


async def delete_rows(tx: Transaction, document: Document) -> tuple[Removal, bool]:
    """Delete a locked document, its file, and up to DROPPED_CHUNKS of its chunks.

    Return what is to be removed after the commit, and whether these were all chunks: a job deletes the rest.
    """
    tenant, erasure_id, target = document.tenant, str(uuid_utils.uuid7()), ErasedDocument(document.id)
    rows, counts, is_complete = await target.collect(tx, DROPPED_CHUNKS)
    rows.subjects[Subject.DOCUMENT] = [document.id]
    rows.add_items(FILES, [document.file_id])
    await job_queries.cancel(tx, RecordKind.DOCUMENT, [document.id], Pipeline.DOCUMENT)
    _, rest = await target.erase(tx, rows, erasure_id)
    digest = await erasure_queries.digest_of(tx, target.subject, target.id)
    rest_of = None if is_complete else document.id
    await erasure_queries.add(tx, erasure_id, target.subject, digest, rest_of)
    counts["documents"] = 1
    await erasure_queries.add_counts(tx, erasure_id, erasure.all_counts(counts))
    if not is_complete:
        await removals.schedule(tx, tenant, erasure_id, 0)
    return rest, is_complete


async def delete_former(tx: Transaction, sources: Sequence[str], *, is_found: bool = True) -> None:
    """Delete the documents that these sources have left, because these are found elsewhere, or nowhere.

    If they are not found yet (`is_found`), only those go that nobody finds either. A job removes the points.
    """
    for former in await queries.list_former(tx, sources):
        if is_found or former.searchable_version is None:
            await delete_rows(tx, former)


async def drop_other_versions(
    tx: Transaction, document: Document, kept_versions: Collection[int]
) -> Removal | None:
    """Delete up to DROPPED_CHUNKS chunks of a locked document of other versions than these.

    Return what is to be removed from Qdrant after the commit, or None if there is no such chunk. A version of
    many chunks takes several calls, each in a transaction of its own: nobody waits long for the document.
    """
    chunks = await chunk_queries.list_other_versions(tx, document.id, kept_versions, DROPPED_CHUNKS)
    if not chunks:
        return None
    ids = [chunk_id for chunk_id, _ in chunks]
    await chunk_queries.delete_chunks(tx, ids)
    rest = await removal.begin(tx, {CHUNKS: ids})
    await embedding_cache.delete_cached(tx, embedding_texts(chunks))
    return rest
