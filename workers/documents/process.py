"""Parse the file of a document, store its text in chunks, and make the index have them.

The chunks are stored in batches, each with its index jobs in one transaction. Search passes them over until
the version is published. Their ids follow from the version and their positions: whoever begins again, after
the death of a worker, stores the same ones, and only those that are missing.

A long text is stored in turns: after half a lease the job is given back and is due again at once, so that no
other worker claims it meanwhile, and documents of other tenants have their turns, too. Each turn reads the
file again and goes on behind the chunks that are stored.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation import errors
from shared.foundation.stages import EMBED, PARSE_DOCUMENT, PUBLISH_DOCUMENT, RecordKind
from shared.jobs import index_jobs
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.lifecycle import removal
from shared.lifecycle.delete_document import drop_other_versions
from shared.memory.documents import chunk_queries, index_document, queries
from shared.memory.documents.chunk import Chunk, chunk, method_of
from shared.memory.documents.document import Document, chunk_id_of
from shared.memory.documents.files.store import file_store
from shared.memory.documents.parsed import ParsedDocument, Unreadable
from shared.platform.resources import Resources
from shared.search.index.points import IndexDocument
from shared.search.index.writer import WRITE_THROUGH_SECONDS
from workers.documents import outcome, publish
from workers.documents.parsing.run import parse
from workers.runtime import drain as job_drain

BATCH = 200
"""Chunks that are stored in one transaction, and written to the index in one request."""
PART_OF_LEASE = 0.5
"""The part of a lease after which a turn ends. At least one batch is stored in each."""


async def process_batch(resources: Resources, jobs: Sequence[Job]) -> None:
    """Process the files of claimed jobs, one after the other."""
    for job in jobs:
        await process(resources, job)


async def process(resources: Resources, job: Job) -> None:
    """Make the text of one file searchable, or record why it can't be."""
    turn_end = time.monotonic() + PART_OF_LEASE * resources.settings.job_lease
    document = await _begin(resources, job)
    if document is None:
        return
    try:
        parsed, chunks = await _read(resources, document)
    except Unreadable as error:
        await outcome.fail(resources, job, error.reason, error.detail)
    except errors.NotFound:
        await outcome.fail(resources, job, "damaged", "The file is no longer stored: upload it again.")
    except errors.Unavailable as error:
        await job_drain.reschedule(resources, PARSE_DOCUMENT, [job], error)
    else:
        await _Storing(resources, job, parsed, chunks, turn_end).run(document.stored_chunks)


async def _begin(resources: Resources, job: Job) -> Document | None:
    """Mark the document, and delete what is left of versions that were replaced before they were published.

    Return None if the claim is no longer valid.
    """
    while True:
        async with resources.postgres.for_tenant(job.tenant) as connection:
            document = await _lock(connection, job)
            if document is None:
                return None
            if document.stored_chunks and document.method != _method(resources):
                await _begin_next_version(connection, document)
                return None
            document = await queries.mark_processing(connection, document)
            kept_versions = {document.version, document.searchable_version or document.version}
            rest = await drop_other_versions(connection, document, kept_versions)
        if rest is None:
            return document
        await removal.work_off(resources, rest)


def _method(resources: Resources) -> str:
    settings = resources.settings
    return method_of(settings.document_chunk_chars, settings.document_chunk_overlap)


async def _begin_next_version(connection: AsyncConnection, document: Document) -> None:
    """Store a locked document anew: the chunks that are stored were cut in another way than others would be.

    They are not replaced one by one, because a version is never used again.
    """
    document = await queries.begin_again(connection, document)
    versions = {document.id: document.version}
    await job_queries.enqueue(connection, document.tenant, RecordKind.DOCUMENT, PARSE_DOCUMENT, versions)


async def _lock(connection: AsyncConnection, job: Job) -> Document | None:
    """Lock the document of a job, and the job; return None if the claim is no longer valid."""
    document = await queries.get(connection, job.tenant, job.record_id, lock=True)
    is_valid = await job_queries.lock_valid(connection, [job])
    return document if is_valid else None


async def _read(resources: Resources, document: Document) -> tuple[ParsedDocument, list[Chunk]]:
    """Return the text of a file. Raises Unreadable, errors.Unavailable and errors.NotFound."""
    settings = resources.settings
    with NamedTemporaryFile(prefix="loci-document-") as file:
        async for block in file_store(resources).open(document.tenant, document.file_id):
            file.write(block)
        file.flush()
        parsed = await parse(
            Path(file.name),
            document.file_name,
            document.declared_type,
            timeout_seconds=settings.document_parse_seconds,
            memory_mb=settings.document_parse_memory_mb,
        )
    size, overlap = settings.document_chunk_chars, settings.document_chunk_overlap
    chunks = await asyncio.to_thread(chunk, parsed.blocks, size, overlap)
    if not chunks:
        raise Unreadable("no_text", "The file has no text.")
    return parsed, chunks


@dataclass(frozen=True, slots=True)
class _Storing:
    """The work of storing the chunks of one version."""

    resources: Resources
    job: Job
    parsed: ParsedDocument
    chunks: Sequence[Chunk]
    turn_end: float

    async def run(self, stored: int) -> None:
        """Store the chunks behind those that are stored until the turn ends.

        Publish the version with the last one, or leave that to the next stage.
        """
        is_all_indexed = not stored  # what was stored in another turn has index jobs, which may be due
        while stored < len(self.chunks):
            rows = await asyncio.to_thread(self._rows, self.chunks[stored : stored + BATCH])
            stored += len(rows)
            is_indexed = await self._store(rows, stored)
            if is_indexed is None:
                return
            is_all_indexed = is_all_indexed and is_indexed
            if stored < len(self.chunks) and time.monotonic() >= self.turn_end:
                await self._end_turn()
                return
        await self._finish(is_indexed=is_all_indexed)

    async def _end_turn(self) -> None:
        async with self.resources.postgres.across_tenants() as connection:
            await job_queries.release(connection, [self.job])

    def _rows(self, chunks: Sequence[Chunk]) -> list[dict[str, Any]]:
        return [
            chunk_queries.row_of(
                chunk_id_of(self.job.record_id, self.job.version, piece.position),
                piece.position,
                piece.text,
                page=piece.page,
                line_from=piece.line_from,
                line_to=piece.line_to,
            )
            for piece in chunks
        ]

    async def _store(self, rows: Sequence[dict[str, Any]], stored: int) -> bool | None:
        """Store a batch; return whether the index has it now, or None if the claim is no longer valid."""
        async with self.resources.postgres.for_tenant(self.job.tenant) as connection:
            document = await _lock(connection, self.job)
            if document is None:
                return None
            new_ids = await chunk_queries.insert_chunks(connection, document, rows)
            total, method = len(self.chunks), _method(self.resources)
            await queries.note_stored(connection, document, self.parsed, method, stored=stored, total=total)
            documents, jobs = await self._enqueue(connection, new_ids)
        # Those that were stored before have index jobs, which others may not have finished.
        is_written = await self.resources.index_writer.write_through(documents, jobs)
        return is_written and len(new_ids) == len(rows)

    async def _enqueue(
        self, connection: AsyncConnection, ids: Sequence[str]
    ) -> tuple[list[IndexDocument], list[Job]]:
        tenant, kind = self.job.tenant, RecordKind.DOCUMENT_CHUNK
        versions = dict.fromkeys(ids, index_document.VERSION)
        jobs = await index_jobs.enqueue_index_jobs(
            connection, tenant, kind, versions, delay=WRITE_THROUGH_SECONDS
        )
        return await chunk_queries.load_documents(connection, tenant, ids), jobs

    async def _finish(self, *, is_indexed: bool) -> None:
        async with self.resources.postgres.for_tenant(self.job.tenant) as connection:
            document = await _lock(connection, self.job)
            if document is None:
                return
            await job_queries.complete(connection, [self.job])
            if not is_indexed or EMBED in publish.stages_before(document):
                versions = {document.id: document.version}
                await job_queries.enqueue(
                    connection, document.tenant, RecordKind.DOCUMENT, PUBLISH_DOCUMENT, versions
                )
                return
            rest = await outcome.make_searchable(connection, document)
        if rest is not None:
            await removal.work_off(self.resources, rest)
