"""Read the file of a document once, and keep all its text as parsed chunks for those who store it.

They are inserted in batches, and the last one says so in the document (`method`). Whoever dies before has
kept nothing: the next one begins anew.
"""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile

from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.memory.documents import parsed_chunk_queries, queries
from shared.memory.documents.chunk import Chunk, chunk, method_of
from shared.memory.documents.document import Document
from shared.memory.documents.files.store import file_store
from shared.memory.documents.parsed import ParsedFile, Unreadable
from shared.platform.resources import Resources
from workers.documents import outcome
from workers.documents.parsing.run import parse

BATCH = 1000
"""Parsed chunks that are inserted in one transaction."""


def method(resources: Resources) -> str:
    """Return how texts are taken and cut by these settings."""
    settings = resources.settings
    return method_of(settings.document_chunk_chars, settings.document_chunk_overlap)


async def keep(resources: Resources, job: Job, document: Document) -> Document | None:
    """Read a file and keep its text. Return the document as it is then, or None if the claim is invalid.

    Raises Unreadable, and errors.Unavailable and errors.NotFound of the file store.
    """
    file, chunks = await _read(resources, document)
    count = len(chunks)
    for number, batch in enumerate(_batches(chunks)):
        async with resources.postgres.for_tenant(job.tenant) as tx:
            locked = await outcome.lock(tx, job)
            if locked is None:
                return None
            if number == 0:  # of an earlier attempt, or of a version that was replaced
                await parsed_chunk_queries.remove(tx, locked)
            await parsed_chunk_queries.insert(tx, locked, batch)
            await job_queries.extend_lease(tx, job, resources.settings.job_lease)
            if batch[-1].position == count - 1:
                document = await queries.note_parsed(tx, locked, file, count)
    return document


async def _read(resources: Resources, document: Document) -> tuple[ParsedFile, list[Chunk]]:
    """Return what a file is, and its text in chunks."""
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
    return ParsedFile(parsed.title, parsed.media_type, method(resources)), chunks


def _batches(chunks: Sequence[Chunk]) -> Iterator[Sequence[Chunk]]:
    for start in range(0, len(chunks), BATCH):
        yield chunks[start : start + BATCH]
