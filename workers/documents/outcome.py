"""How the work on a version of a document ends: search finds it, or it has failed with a reason.

Each function records its outcome only if the claim on the job is still valid. It locks the document first,
as a deletion does.
"""

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.jobs import counters
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.lifecycle import removal
from shared.lifecycle.delete_document import drop_other_versions
from shared.lifecycle.removal import Removal
from shared.memory.documents import queries
from shared.memory.documents.document import Document
from shared.platform.resources import Resources

EXHAUSTED = "exhausted"


async def make_searchable(connection: AsyncConnection, document: Document) -> Removal:
    """Let search find the latest version of a locked document in place of all earlier ones.

    Return what is to be removed from Qdrant after the commit.
    """
    document = await queries.make_searchable(connection, document)
    rest = await drop_other_versions(connection, document, {document.version})
    await counters.increment(connection, "documents", {"ready": 1})
    return rest


async def fail(resources: Resources, job: Job, reason_code: str, reason: str) -> None:
    """End the work on a version that can't be searched. An earlier one stays searchable."""
    async with resources.postgres.for_tenant(job.tenant) as connection:
        document = await queries.get(connection, job.tenant, job.record_id, lock=True)
        if not await job_queries.complete(connection, [job]) or document is None:
            return
        await queries.fail(connection, document, reason_code, reason)
        rest = await drop_other_versions(connection, document, {document.searchable_version or 0})
        await counters.increment(connection, "documents", {reason_code: 1})
    await removal.work_off(resources, rest)


async def give_up(resources: Resources, job: Job, reason: str) -> None:
    """End the work on a version that has ended its worker too often."""
    await fail(resources, job, EXHAUSTED, reason)
