"""Add vectors to points: from the cache where the same text was embedded before, else from the model."""

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

Found = dict[tuple[str, RecordKind, str], IndexDocument]
Place = tuple[str, str]  # a tenant and a passage of it
log = structlog.get_logger()


async def embed_batch(resources: Resources, claims: Sequence[Job]) -> None:
    """Embed what is due and add the vectors; what has no model to be embedded with is done."""
    async with resources.postgres.across_tenants() as connection:
        known = {generation.id: generation for generation in await generations.list_generations(connection)}
    embedder, mine = resources.embedder, claims
    try:
        mine = [claim for claim in claims if await _embeds(known.get(claim.generation), embedder)]
        await _finish(resources, [claim for claim in claims if claim not in mine])
        if embedder is None or not mine:
            return
        found = await documents.load_documents(resources, mine)
        by_tenant, refused = await _vectors(resources, embedder, list(found.values()))
    except errors.Unavailable as away:
        await job_drain.reschedule(resources, EMBED, mine, away)
        return
    waiting = await _put_off(resources, mine, found, refused)
    for number in {claim.generation for claim in mine}:
        held = [claim for claim in mine if claim.generation == number and claim.id not in waiting]
        await _add(resources, known[number], held, found, by_tenant)


async def _embeds(generation: Generation | None, embedder: Embedder | None) -> bool:
    """A generation of another model than this process's is left to be retired."""
    if generation is None or embedder is None or generation.model != embedder.model:
        return False
    return generation.is_embedded_by(embedder.model, await embedder.dimension())


async def _finish(resources: Resources, claims: Sequence[Job]) -> None:
    async with resources.postgres.across_tenants() as connection:
        await job_queries.complete(connection, claims)


async def _vectors(
    resources: Resources, embedder: Embedder, found: Sequence[IndexDocument]
) -> tuple[dict[Place, Vector], dict[Place, errors.OverBudget]]:
    """Return a vector for each (tenant, passage), and for which ones a budget forbids asking."""
    passages: dict[str, list[str]] = {}
    for document in found:
        passages.setdefault(document.tenant, []).append(document.embedding_text)
    known: dict[Place, Vector] = {}
    dimension = await embedder.dimension()
    for tenant, texts in passages.items():
        async with resources.postgres.for_tenant(tenant) as connection:
            cached = await embedding_cache.find(
                connection, tenant, embedder.model, dimension, sorted(set(texts))
            )
        known |= {(tenant, passage): vector for passage, vector in cached.items()}
    refused: dict[Place, errors.OverBudget] = {}
    lacking = {
        (d.tenant, d.embedding_text): _payer(d) for d in found if (d.tenant, d.embedding_text) not in known
    }
    for asked in _batches(list(lacking), embedder.batch_size):
        answers = await metered_calls.embed(
            resources, embedder, [(lacking[place], place[1]) for place in asked]
        )
        told = dict(zip(asked, answers, strict=True))
        refused |= {place: one for place, one in told.items() if isinstance(one, errors.OverBudget)}
        fresh = {place: one for place, one in told.items() if not isinstance(one, errors.OverBudget)}
        # At once: should the next call fail, what this one cost is not paid for again.
        await _cache(resources, embedder, fresh)
        known |= fresh
    return known, refused


def _payer(document: IndexDocument) -> Payer:
    """A desk is nobody's own: what it holds is paid for by the tenant."""
    agent, user = document.filters.get("agent_id"), document.filters.get("user_id")
    return Payer(document.tenant, agent, user or None, Purpose.EMBEDDING)


def _batches(places: list[Place], size: int) -> Iterator[list[Place]]:
    return (places[start : start + size] for start in range(0, len(places), size))


async def _put_off(
    resources: Resources, claims: Sequence[Job], found: Found, refused: Mapping[Place, errors.OverBudget]
) -> set[int]:
    """Leave until the budget's next window what it forbids now: by its words it is found all the while."""
    waiting = [
        (claim, refused[(document.tenant, document.embedding_text)])
        for claim in claims
        if (document := found.get((claim.tenant, claim.kind, claim.record_id)))
        and (document.tenant, document.embedding_text) in refused
    ]
    if waiting:
        async with resources.postgres.across_tenants() as connection:
            for claim, over in sorted(waiting, key=_in_order):
                await job_queries.reschedule(
                    connection,
                    claim,
                    str(over),
                    over.retry_after,
                    reason_code=ReasonCode.OVER_BUDGET,
                    refund=True,
                )
    return {claim.id for claim, _ in waiting}


def _in_order(waiting: tuple[Job, errors.OverBudget]) -> tuple[str, ...]:
    """In the order in which work rows are held everywhere."""
    claim = waiting[0]
    return (claim.tenant, claim.kind, claim.record_id, f"{claim.generation:012}")


async def _cache(resources: Resources, embedder: Embedder, fresh: Mapping[Place, Vector]) -> None:
    for tenant in {tenant for tenant, _ in fresh}:
        mine = {passage: vector for (owner, passage), vector in fresh.items() if owner == tenant}
        async with resources.postgres.for_tenant(tenant) as connection:
            await embedding_cache.save(connection, tenant, embedder.model, mine)


async def _add(
    resources: Resources,
    generation: Generation,
    claims: Sequence[Job],
    found: Found,
    by_tenant: Mapping[tuple[str, str], Vector],
) -> None:
    present = [
        found[key] for claim in claims if (key := (claim.tenant, claim.kind, claim.record_id)) in found
    ]
    pairs = [(document, by_tenant[(document.tenant, document.embedding_text)]) for document in present]
    try:
        if pairs:
            await points.add_vectors(resources.qdrant, generation.collection, pairs)
    except CollectionNotFound as lost:
        await job_drain.reschedule(resources, EMBED, claims, errors.Unavailable("qdrant", str(lost)))
    except errors.Unavailable as away:
        await job_drain.reschedule(resources, EMBED, claims, away)
    except RequestRefused as refusal:
        await _reschedule_refused(resources, claims, refusal)
    except PointNotFound:
        # One of the points is not there (the index lost it, or its record just changed), and the
        # rest were not written for it. Back to the index stage, which writes the points first.
        await _write_again(resources, claims)
    else:
        async with resources.postgres.across_tenants() as connection:
            ages = await index_jobs.confirm_embedded(connection, claims)
        await fleet_counters.observe_time_to_searchable(resources.postgres, "vector", ages)


async def _reschedule_refused(resources: Resources, claims: Sequence[Job], refusal: RequestRefused) -> None:
    """Try again later at the cost of an attempt: after the last one a job is dead, for this reason."""
    log.warning("vectors_refused", rows=len(claims), reason=str(refusal))
    exhausted = [claim for claim in claims if claim.attempts >= resources.settings.job_max_attempts]
    retried = [claim for claim in claims if claim not in exhausted]
    async with resources.postgres.across_tenants() as connection:
        for claim in sorted(retried, key=attrgetter("tenant", "kind", "record_id", "generation")):
            delay = job_drain.retry_delay(resources, claim.attempts)
            await job_queries.reschedule(
                connection, claim, str(refusal), delay, reason_code=ReasonCode.REJECTED, refund=False
            )
        for claim in sorted(exhausted, key=attrgetter("tenant", "kind", "record_id", "generation")):
            await dead_jobs.mark_dead(connection, claim, str(refusal))


async def _write_again(resources: Resources, claims: Sequence[Job]) -> None:
    log.warning("points_missing", rows=len(claims))
    async with resources.postgres.across_tenants() as connection:
        await index_jobs.reset_to_index(connection, claims)
    resources.publisher.wake(stages.INDEX, len(claims))
