"""Make search find the new version of a document as soon as the index has its chunks.

Until then search finds the old version. One that replaces another also waits for its embeddings, because a
question in other words finds the old one by its own; but not for longer than MAX_VECTOR_WAIT, as the model
may be away for long.

Of a version with many chunks that was replaced or has failed, the same stage deletes what is left.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from shared.foundation.stages import EMBED, INDEX, ReasonCode, Stage
from shared.infra.transaction import Transaction
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.lifecycle import removal
from shared.lifecycle.removal import Removal
from shared.memory.documents import chunk_queries, queries
from shared.memory.documents.document import Document, DocumentState
from shared.platform.resources import Resources
from workers.documents import outcome

MAX_VECTOR_WAIT = timedelta(minutes=10)
_RETRY_SECONDS = 0.5


async def publish_batch(resources: Resources, jobs: Sequence[Job]) -> None:
    """Publish those of the versions whose chunks are indexed, and look at the others again in a moment."""
    for job in jobs:
        async with resources.postgres.for_tenant(job.tenant) as tx:
            rest = await _publish(tx, job)
        if rest is not None:
            await removal.work_off(resources, rest)


async def _publish(tx: Transaction, job: Job) -> Removal | None:
    document = await queries.get(tx, job.record_id, lock=True)
    if document is None or document.version != job.version:  # it was deleted, or has another file
        await job_queries.complete(tx, [job])
        return None
    if document.state in {DocumentState.READY, DocumentState.FAILED}:
        is_valid = await job_queries.complete(tx, [job])
        return await outcome.drop_unsearchable(tx, document) if is_valid else None
    count = await chunk_queries.count_unindexed(tx, document, stages_before(document))
    if count:
        await job_queries.reschedule(
            tx,
            job,
            f"the index lacks {count} of its chunks",
            _RETRY_SECONDS,
            reason_code=ReasonCode.NOT_READY,
            refund=True,
        )
        return None
    if not await job_queries.complete(tx, [job]):
        return None
    return await outcome.make_searchable(tx, document)


def stages_before(document: Document) -> tuple[Stage, ...]:
    """Return the stages of its index jobs that a version waits for."""
    has_waited = datetime.now(UTC) - document.updated_at > MAX_VECTOR_WAIT
    return (INDEX,) if document.searchable_version is None or has_waited else (INDEX, EMBED)
