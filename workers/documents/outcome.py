"""How the work on a version of a document ends: search finds it, or it has failed with a reason.

Each function that ends it records its outcome only if the claim on the job is still valid. It locks the
document first, as a deletion does. The chunks of earlier versions are deleted afterwards, some with the
outcome and those that are left by the job `publish_document`: nobody finds them any more.
"""

from shared.foundation.stages import PUBLISH_DOCUMENT, RecordKind
from shared.infra.transaction import Transaction
from shared.jobs import counters
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.lifecycle import removal
from shared.lifecycle.delete_document import delete_former, drop_other_versions
from shared.lifecycle.removal import Removal
from shared.memory.documents import chunk_queries, parsed_chunk_queries, queries
from shared.memory.documents.document import Document, DocumentState
from shared.platform.resources import Resources

EXHAUSTED = "exhausted"


async def lock(tx: Transaction, job: Job) -> Document | None:
    """Lock the document of a job, and the job; return None if the claim is no longer valid."""
    document = await queries.get(tx, job.record_id, lock=True)
    is_valid = await job_queries.lock_valid(tx, [job])
    return document if is_valid else None


async def make_searchable(tx: Transaction, document: Document) -> Removal | None:
    """Let search find the latest version of a locked document in place of all earlier ones.

    Return what is to be removed from Qdrant after the commit.
    """
    document = await queries.make_searchable(tx, document)
    rest = await drop_unsearchable(tx, document)
    await delete_former(tx, document.sources)
    await counters.increment(tx, "documents", {"ready": 1})
    return rest


async def fail(resources: Resources, job: Job, reason_code: str, reason: str) -> None:
    """End the work on a version that can't be searched. An earlier one stays searchable."""
    async with resources.postgres.for_tenant(job.tenant) as tx:
        document = await queries.get(tx, job.record_id, lock=True)
        if not await job_queries.complete(tx, [job]) or document is None:
            return
        # The work has ended already if the job was only to delete what is left of earlier versions.
        has_ended = document.state in {DocumentState.READY, DocumentState.FAILED}
        if not has_ended:
            document = await queries.fail(tx, document, reason_code, reason)
            await parsed_chunk_queries.remove(tx, document)
        rest = await drop_unsearchable(tx, document)
        if not has_ended:
            await counters.increment(tx, "documents", {reason_code: 1})
    if rest is not None:
        await removal.work_off(resources, rest)


async def drop_unsearchable(tx: Transaction, document: Document) -> Removal | None:
    """Delete chunks of a locked document, on which no work is left, that are not of its searchable version.

    If there are more, a job is due to delete them. Return what is to be removed from Qdrant after the commit.
    """
    kept_versions = {document.searchable_version or 0}
    rest = await drop_other_versions(tx, document, kept_versions)
    if await chunk_queries.has_other_versions(tx, document, kept_versions):
        versions = {document.id: document.version}
        await job_queries.enqueue(tx, document.tenant, RecordKind.DOCUMENT, PUBLISH_DOCUMENT, versions)
    return rest


async def give_up(resources: Resources, job: Job, reason: str) -> None:
    """End the work on a version that has ended its worker too often."""
    await fail(resources, job, EXHAUSTED, reason)
