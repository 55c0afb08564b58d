"""Add embeddings to points: from the cache if the same text was embedded before, else from the model."""

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

import structlog

from shared.foundation import errors, stages
from shared.foundation.stages import EMBED, ReasonCode, RecordKind
from shared.infra.embedder import Embedder, Vector
from shared.infra.qdrant import CollectionNotFound, PointNotFound, RequestRefused
from shared.jobs import counters as fleet_counters
from shared.jobs import dead_jobs, index_jobs
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.platform.resources import Resources
from shared.platform.spend import metered_calls
from shared.platform.spend.charge import Payer, Purpose
from shared.search.index import embedding_cache, generations, points
from shared.search.index.generations import Generation
from shared.search.index.points import IndexDocument
from workers.embedding import documents
from workers.runtime import drain as job_drain

DocumentKey = tuple[str, RecordKind, str]  # tenant, kind, record id
TextKey = tuple[str, str]  # tenant, embedding text
log = structlog.get_logger()
_LOCK_ORDER = attrgetter("tenant", "kind", "record_id", "generation")
"""The order in which jobs are locked everywhere. Locking in another order could deadlock."""


async def embed_batch(resources: Resources, jobs: Sequence[Job]) -> None:
    """Embed the records of jobs and add the vectors to their points.

    Jobs of a generation that this process's model can't embed are completed without a vector.
    """
    async with resources.postgres.across_tenants() as connection:
        by_id = {generation.id: generation for generation in await generations.list_generations(connection)}
    embedder, pending_jobs = resources.embedder, jobs
    try:
        pending_jobs = [job for job in jobs if await _is_embedded(by_id.get(job.generation), embedder)]
        await _complete(resources, [job for job in jobs if job not in pending_jobs])
        if embedder is None or not pending_jobs:
            return
        documents_by_key = await documents.load_documents(resources, pending_jobs)
        vectors, refusals = await _embed_texts(resources, embedder, pending_jobs, documents_by_key)
    except errors.Unavailable as error:
        await job_drain.reschedule(resources, EMBED, pending_jobs, error)
        return
    delayed_ids = await _delay_over_budget(resources, pending_jobs, documents_by_key, refusals)
    for number in {job.generation for job in pending_jobs}:
        generation_jobs = [
            job for job in pending_jobs if job.generation == number and job.id not in delayed_ids
        ]
        await _add_vectors(resources, by_id[number], generation_jobs, documents_by_key, vectors)


async def _is_embedded(generation: Generation | None, embedder: Embedder | None) -> bool:
    """Return whether this process's model embeds a generation; one of another model is to be retired."""
    if generation is None or embedder is None or generation.model != embedder.model:
        return False
    return generation.is_embedded_by(embedder.model, await embedder.dimension())


async def _complete(resources: Resources, jobs: Sequence[Job]) -> None:
    async with resources.postgres.across_tenants() as connection:
        await job_queries.complete(connection, jobs)


async def _embed_texts(
    resources: Resources,
    embedder: Embedder,
    jobs: Sequence[Job],
    documents_by_key: Mapping[DocumentKey, IndexDocument],
) -> tuple[dict[TextKey, Vector], dict[TextKey, errors.OverBudget]]:
    """Return the vectors of the documents' texts, and the refusals of those that a budget forbids."""
    batch = list(documents_by_key.values())
    vectors = await _find_cached(resources, embedder, batch)
    refusals: dict[TextKey, errors.OverBudget] = {}
    payers = {
        key: _payer(document)
        for document in batch
        if (key := (document.tenant, document.embedding_text)) not in vectors
    }
    for keys in _batches(list(payers), embedder.batch_size):
        texts = [(payers[key], key[1]) for key in keys]
        outcomes = await metered_calls.embed(resources, embedder, texts)
        new_vectors: dict[TextKey, Vector] = {}
        for key, outcome in zip(keys, outcomes, strict=True):
            if isinstance(outcome, errors.OverBudget):
                refusals[key] = outcome
            else:
                new_vectors[key] = outcome
        # Before the next call: if that fails, these texts are not paid for a second time.
        await _cache(resources, embedder, jobs, documents_by_key, new_vectors)
        vectors |= new_vectors
    return vectors, refusals


async def _find_cached(
    resources: Resources, embedder: Embedder, batch: Sequence[IndexDocument]
) -> dict[TextKey, Vector]:
    texts_by_tenant: dict[str, set[str]] = {}
    for document in batch:
        texts_by_tenant.setdefault(document.tenant, set()).add(document.embedding_text)
    vectors: dict[TextKey, Vector] = {}
    dimension = await embedder.dimension()
    for tenant, texts in texts_by_tenant.items():
        async with resources.postgres.for_tenant(tenant) as connection:
            cached_vectors = await embedding_cache.find(
                connection, tenant, embedder.model, dimension, sorted(texts)
            )
        vectors |= {(tenant, text): vector for text, vector in cached_vectors.items()}
    return vectors


def _payer(document: IndexDocument) -> Payer:
    """Return who pays for a document's embedding: the tenant alone for working memory, which has no agent."""
    agent_id, user_id = document.filters.get("agent_id"), document.filters.get("user_id")
    return Payer(document.tenant, agent_id, user_id or None, Purpose.EMBEDDING)


def _batches(keys: list[TextKey], size: int) -> Iterator[list[TextKey]]:
    return (keys[start : start + size] for start in range(0, len(keys), size))


async def _delay_over_budget(
    resources: Resources,
    jobs: Sequence[Job],
    documents_by_key: Mapping[DocumentKey, IndexDocument],
    refusals: Mapping[TextKey, errors.OverBudget],
) -> set[int]:
    """Delay the jobs that a budget forbids until its next window, and return their ids.

    Their records are found by keywords meanwhile.
    """
    delayed_jobs = [
        (job, refusals[(document.tenant, document.embedding_text)])
        for job in jobs
        if (document := documents_by_key.get((job.tenant, job.kind, job.record_id)))
        and (document.tenant, document.embedding_text) in refusals
    ]
    if delayed_jobs:
        async with resources.postgres.across_tenants() as connection:
            for job, refusal in sorted(delayed_jobs, key=lambda pair: _LOCK_ORDER(pair[0])):
                await job_queries.reschedule(
                    connection,
                    job,
                    str(refusal),
                    refusal.retry_after,
                    reason_code=ReasonCode.OVER_BUDGET,
                    refund=True,
                )
    return {job.id for job, _ in delayed_jobs}


async def _cache(
    resources: Resources,
    embedder: Embedder,
    jobs: Sequence[Job],
    documents_by_key: Mapping[DocumentKey, IndexDocument],
    vectors: Mapping[TextKey, Vector],
) -> None:
    """Keep the vectors of records that still are what was read.

    The claim of a job ends when its record is changed or deleted. A vector that was kept afterwards would
    outlive its text. Working memory ends by itself, so its vectors are not kept.
    """
    for tenant in {tenant for tenant, _ in vectors}:
        tenant_jobs = [job for job in jobs if job.tenant == tenant and job.kind is not RecordKind.WORKING]
        async with resources.postgres.for_tenant(tenant) as connection:
            valid_jobs = await job_queries.lock_valid(connection, tenant_jobs)
            keys = [(job.tenant, job.kind, job.record_id) for job in valid_jobs]
            texts = {documents_by_key[key].embedding_text for key in keys if key in documents_by_key}
            by_text = {text: vector for (owner, text), vector in vectors.items() if owner == tenant}
            kept = {text: vector for text, vector in by_text.items() if text in texts}
            await embedding_cache.save(connection, tenant, embedder.model, kept)


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
        async with resources.postgres.across_tenants() as connection:
            ages = await index_jobs.confirm_embedded(connection, jobs)
        await fleet_counters.observe_time_to_searchable(resources.postgres, "vector", ages)


async def _reschedule_refused(resources: Resources, jobs: Sequence[Job], refusal: RequestRefused) -> None:
    """Reschedule jobs whose vectors Qdrant refused, using up an attempt; the last attempt marks them dead."""
    log.warning("vectors_refused", rows=len(jobs), reason=str(refusal))
    exhausted_jobs = [job for job in jobs if job.attempts >= resources.settings.job_max_attempts]
    retried_jobs = [job for job in jobs if job not in exhausted_jobs]
    async with resources.postgres.across_tenants() as connection:
        for job in sorted(retried_jobs, key=_LOCK_ORDER):
            delay = job_drain.retry_delay(resources, job.attempts)
            await job_queries.reschedule(
                connection, job, str(refusal), delay, reason_code=ReasonCode.REJECTED, refund=False
            )
        for job in sorted(exhausted_jobs, key=_LOCK_ORDER):
            await dead_jobs.mark_dead(connection, job, str(refusal))


async def _reset_to_index(resources: Resources, jobs: Sequence[Job]) -> None:
    log.warning("points_missing", rows=len(jobs))
    async with resources.postgres.across_tenants() as connection:
        await index_jobs.reset_to_index(connection, jobs)
    resources.publisher.wake(stages.INDEX, len(jobs))
