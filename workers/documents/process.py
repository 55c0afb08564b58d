"""Parse the file of a document, store its text in chunks, and make the index have them.

A file is read once: all its text is kept as parsed chunks (`parsed_text.py`). These are then stored as chunks
in batches, each with its index jobs in one transaction. Search passes them over until the version is
published. Whoever begins again, after the death of a worker, goes on with those that are left.

A long text is stored in turns: after half a lease the job is given back and is due again at once, so that no
other worker claims it meanwhile, and documents of other tenants have their turns, too.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.foundation import errors
from shared.foundation.stages import EMBED, PARSE_DOCUMENT, PUBLISH_DOCUMENT, RecordKind
from shared.infra.transaction import Transaction
from shared.jobs import index_jobs
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.lifecycle import removal
from shared.lifecycle.delete_document import drop_other_versions
from shared.memory.documents import chunk_queries, index_document, parsed_chunk_queries, queries
from shared.memory.documents.chunk import Chunk
from shared.memory.documents.document import Document, chunk_id_of
from shared.memory.documents.parsed import Unreadable
from shared.platform.resources import Resources
from shared.search.index.points import IndexDocument
from shared.search.index.writer import WRITE_THROUGH_SECONDS
from workers.documents import outcome, parsed_text, publish
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
    try:
        if document is not None and document.method is None:
            document = await parsed_text.keep(resources, job, document)
    except Unreadable as error:
        await outcome.fail(resources, job, error.reason, error.detail)
    except errors.NotFound:
        await outcome.fail(resources, job, "damaged", "The file is no longer stored: upload it again.")
    except errors.Unavailable as error:
        await job_drain.reschedule(resources, PARSE_DOCUMENT, [job], error)
    else:
        if document is not None:
            await _Storing(resources, job, document, turn_end).run()


async def _begin(resources: Resources, job: Job) -> Document | None:
    """Mark the document, and delete what is left of versions that were replaced before they were published.

    Return None if the claim is no longer valid.
    """
    while True:
        async with resources.postgres.for_tenant(job.tenant) as tx:
            document = await outcome.lock(tx, job)
            if document is None:
                return None
            if document.method is not None and document.method != parsed_text.method(resources):
                await _begin_next_version(tx, document)
                return None
            document = await queries.mark_processing(tx, document)
            kept_versions = {document.version, document.searchable_version or document.version}
            rest = await drop_other_versions(tx, document, kept_versions)
        if rest is None:
            return document
        await removal.work_off(resources, rest)


async def _begin_next_version(tx: Transaction, document: Document) -> None:
    """Have a locked document read anew, because its chunks were cut in another way than others would be.

    They are not replaced one by one, because a version is never used again.
    """
    document = await queries.begin_again(tx, document)
    versions = {document.id: document.version}
    await job_queries.enqueue(tx, document.tenant, RecordKind.DOCUMENT, PARSE_DOCUMENT, versions)


@dataclass(frozen=True, slots=True)
class _Storing:
    """The work of storing the chunks of one version, whose text is kept as parsed chunks."""

    resources: Resources
    job: Job
    document: Document
    turn_end: float

    async def run(self) -> None:
        """Store the chunks that are left until the turn ends.

        Publish the version with the last one, or leave that to the next stage.
        """
        # What was stored in another turn has index jobs, which may be due.
        is_all_indexed = not self.document.stored_chunks
        chunks = await self._read_batch()
        while chunks:
            rows = await asyncio.to_thread(self._rows, chunks)
            is_indexed = await self._store(rows)
            if is_indexed is None:
                return
            is_all_indexed = is_all_indexed and is_indexed
            chunks = await self._read_batch()
            if chunks and time.monotonic() >= self.turn_end:
                await self._end_turn()
                return
        await self._finish(is_indexed=is_all_indexed)

    async def _read_batch(self) -> list[Chunk]:
        async with self.resources.postgres.for_tenant(self.job.tenant) as tx:
            return await parsed_chunk_queries.list_first(tx, self.document, BATCH)

    async def _end_turn(self) -> None:
        async with self.resources.postgres.across_tenants() as tx:
            await job_queries.release(tx, [self.job])

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

    async def _store(self, rows: Sequence[dict[str, Any]]) -> bool | None:
        """Store a batch; return whether the index has it now, or None if the claim is no longer valid."""
        async with self.resources.postgres.for_tenant(self.job.tenant) as tx:
            document = await outcome.lock(tx, self.job)
            if document is None:
                return None
            new_ids = await chunk_queries.insert_chunks(tx, document, rows)
            last_position = rows[-1]["position"]
            await parsed_chunk_queries.remove_stored(tx, document, last_position)
            await queries.note_stored(tx, document, last_position + 1)
            documents, jobs = await self._enqueue(tx, new_ids)
        # Those that were stored before have index jobs, which others may not have finished.
        is_written = await self.resources.index_writer.write_through(documents, jobs)
        return is_written and len(new_ids) == len(rows)

    async def _enqueue(self, tx: Transaction, ids: Sequence[str]) -> tuple[list[IndexDocument], list[Job]]:
        tenant, kind = self.job.tenant, RecordKind.DOCUMENT_CHUNK
        versions = dict.fromkeys(ids, index_document.VERSION)
        jobs = await index_jobs.enqueue_index_jobs(tx, tenant, kind, versions, delay=WRITE_THROUGH_SECONDS)
        return await chunk_queries.load_documents(tx, ids), jobs

    async def _finish(self, *, is_indexed: bool) -> None:
        async with self.resources.postgres.for_tenant(self.job.tenant) as tx:
            document = await outcome.lock(tx, self.job)
            if document is None:
                return
            if document.stored_chunks != document.chunk_count:  # stored in part by an older release
                await _begin_next_version(tx, document)
                return
            await job_queries.complete(tx, [self.job])
            if not is_indexed or EMBED in publish.stages_before(document):
                versions = {document.id: document.version}
                await job_queries.enqueue(
                    tx, document.tenant, RecordKind.DOCUMENT, PUBLISH_DOCUMENT, versions
                )
                return
            rest = await outcome.make_searchable(tx, document)
        if rest is not None:
            await removal.work_off(self.resources, rest)
