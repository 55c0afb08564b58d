"""Add embeddings to points: from the cache if the same text was embedded before, else from the model."""

from collections.abc import Mapping, Sequence

import structlog

from shared.foundation import errors, stages
from shared.foundation.stages import EMBED, ReasonCode, RecordKind
from shared.infra.embedder import Embedder, Vector
from shared.infra.qdrant import CollectionNotFound, PointNotFound, RequestRefused
from shared.jobs import counters as fleet_counters
from shared.jobs import dead_jobs, index_jobs, model_guard
from shared.jobs import queries as job_queries
from shared.jobs.job import LOCK_ORDER, Job
from shared.platform.resources import Resources
from shared.platform.spend.charge import Purpose
from shared.search.index import generations, points
from shared.search.index.generations import Generation
from shared.search.index.points import IndexDocument
from workers.embedding import documents, embed_texts
from workers.embedding.embed_texts import Refusal, TextKey
from workers.runtime import drain as job_drain

DocumentKey = tuple[str, RecordKind, str]  # tenant, kind, record id
log = structlog.get_logger()


async def embed_batch(resources: Resources, jobs: Sequence[Job]) -> None:
    """Embed the records of jobs and add the vectors to their points.

    Jobs of a generation that this process's model can't embed are completed without a vector.
    """
    async with resources.postgres.across_tenants() as tx:
        by_id = {generation.id: generation for generation in await generations.list_generations(tx)}
    embedder, pending_jobs = resources.embedder, jobs
    try:
        pending_jobs = await _embeddable_jobs(resources, jobs, by_id)
        await _complete(resources, [job for job in jobs if job not in pending_jobs])
        if embedder is None or not pending_jobs:
            return
        documents_by_key = await documents.load_documents(resources, pending_jobs)
        vectors, refusals = await embed_texts.embed_texts(resources, embedder, pending_jobs, documents_by_key)
    except errors.Unavailable as error:
        await job_drain.reschedule(resources, EMBED, pending_jobs, error)
        return
    set_aside_ids = await _set_aside(resources, pending_jobs, documents_by_key, refusals)
    for number in {job.generation for job in pending_jobs}:
        generation_jobs = [
            job for job in pending_jobs if job.generation == number and job.id not in set_aside_ids
        ]
        await _add_vectors(resources, by_id[number], generation_jobs, documents_by_key, vectors)


async def _embeddable_jobs(
    resources: Resources, jobs: Sequence[Job], by_id: Mapping[int, Generation]
) -> list[Job]:
    embedder = resources.embedder
    if embedder is None or embedder.is_known:
        return [job for job in jobs if await _is_embedded(by_id.get(job.generation), embedder)]
    stage = Purpose.EMBEDDING
    async with model_guard.guard(resources.postgres, resources.settings, stage, embedder.identity):
        return [job for job in jobs if await _is_embedded(by_id.get(job.generation), embedder)]


async def _is_embedded(generation: Generation | None, embedder: Embedder | None) -> bool:
    """Return whether this process's model embeds a generation; one of another model is to be retired."""
    if generation is None or embedder is None or generation.model != await embedder.name():
        return False
    return generation.is_embedded_by(generation.model, await embedder.dimension())


async def _complete(resources: Resources, jobs: Sequence[Job]) -> None:
    async with resources.postgres.across_tenants() as tx:
        await job_queries.complete(tx, jobs)


async def _set_aside(
    resources: Resources,
    jobs: Sequence[Job],
    documents_by_key: Mapping[DocumentKey, IndexDocument],
    refusals: Mapping[TextKey, Refusal],
) -> set[int]:
    """End or delay the jobs whose texts have no vector, and return their ids.

    A budget delays a job until its next window. A text that the model cannot embed ends its job with the
    reason. Their records are found by keywords all the same.
    """
    pairs = [
        (job, refusals[(document.tenant, document.embedding_text)])
        for job in jobs
        if (document := documents_by_key.get((job.tenant, job.kind, job.record_id)))
        and (document.tenant, document.embedding_text) in refusals
    ]
    if pairs:
        async with resources.postgres.across_tenants() as tx:
            for job, refusal in sorted(pairs, key=lambda pair: LOCK_ORDER(pair[0])):
                if isinstance(refusal, errors.OverBudget):
                    await job_queries.reschedule(
                        tx,
                        job,
                        str(refusal),
                        refusal.retry_after,
                        reason_code=ReasonCode.OVER_BUDGET,
                        refund=True,
                    )
                else:
                    await dead_jobs.mark_dead(tx, job, str(refusal))
    return {job.id for job, _ in pairs}


async def _add_vectors(
    resources: Resources,
    generation: Generation,
    jobs: Sequence[Job],
    documents_by_key: Mapping[DocumentKey, IndexDocument],
    vectors: Mapping[TextKey, Vector],
) -> None:
    keys = [(job.tenant, job.kind, job.record_id) for job in jobs]
    batch = [documents_by_key[key] for key in keys if key in documents_by_key]
    pairs = [(document, vectors[(document.tenant, document.embedding_text)]) for document in batch]
    try:
        if pairs:
            await points.add_vectors(resources.qdrant, generation.collection, pairs)
    except CollectionNotFound as error:
        await job_drain.reschedule(resources, EMBED, jobs, errors.Unavailable("qdrant", str(error)))
    except errors.Unavailable as error:
        await job_drain.reschedule(resources, EMBED, jobs, error)
    except RequestRefused as error:
        await _reschedule_refused(resources, jobs, error)
    except PointNotFound:
        # One of the points does not exist: the index lost it, or its record has just changed. Qdrant
        # then wrote none of the vectors, so all jobs go back to the index stage, which writes the points.
        await _reset_to_index(resources, jobs)
    else:
        async with resources.postgres.across_tenants() as tx:
            ages = await index_jobs.confirm_embedded(tx, jobs)
        await fleet_counters.observe_time_to_searchable(resources.postgres, "vector", ages)


async def _reschedule_refused(resources: Resources, jobs: Sequence[Job], refusal: RequestRefused) -> None:
    """Reschedule jobs whose vectors Qdrant refused, using up an attempt; the last attempt marks them dead."""
    log.warning("vectors_refused", rows=len(jobs), reason=str(refusal))
    exhausted_jobs = [job for job in jobs if job.attempts >= resources.settings.job_max_attempts]
    retried_jobs = [job for job in jobs if job not in exhausted_jobs]
    async with resources.postgres.across_tenants() as tx:
        for job in sorted(retried_jobs, key=LOCK_ORDER):
            delay = job_drain.retry_delay(resources, job.attempts)
            await job_queries.reschedule(
                tx, job, str(refusal), delay, reason_code=ReasonCode.REJECTED, refund=False
            )
        for job in sorted(exhausted_jobs, key=LOCK_ORDER):
            await dead_jobs.mark_dead(tx, job, str(refusal))


async def _reset_to_index(resources: Resources, jobs: Sequence[Job]) -> None:
    log.warning("points_missing", rows=len(jobs))
    async with resources.postgres.across_tenants() as tx:
        await index_jobs.reset_to_index(tx, jobs)
    resources.publisher.wake(stages.INDEX, len(jobs))
