"""Keep the index generations in step with the configured model, and rebuild without interruption.

`ensure_generations` runs at every process start and in the sweep. It creates the first generation of
each kind, and a new one beside the live one when the configured model has changed. `start_reindex`
creates a new one in any case. `promote_ready` promotes generations that are complete, and drops retired
ones.
"""

from collections.abc import Sequence
from datetime import timedelta

import structlog

from shared.foundation import errors, stages
from shared.foundation.stages import SEARCHABLE_KINDS, RecordKind
from shared.infra.transaction import FleetTransaction
from shared.jobs import model_guard, model_pauses
from shared.lifecycle.reindex.backfill import backfill
from shared.platform.resources import Resources
from shared.platform.spend.charge import Purpose
from shared.search.index import collections, generations
from shared.search.index.generations import Generation

# Longer than any reader caches which generation is live.
RETIRE_AFTER = timedelta(seconds=30)
log = structlog.get_logger()


async def ensure_generations(resources: Resources) -> list[Generation]:
    """Create the generations that kinds lack for the configured model, and return them.

    If the embedding endpoint is unavailable, nothing changes until the next call, except that kinds
    without any live generation get one without a model.
    """
    try:
        model, dimension = await _model_and_dimension(resources)
    except errors.Unavailable as error:
        log.warning("embedding_endpoint_unavailable", reason=str(error))
        model, dimension = None, None
        if await _all_kinds_live(resources):
            return []
    return await _create_generations(resources, list(SEARCHABLE_KINDS), model, dimension, always=False)


async def start_reindex(resources: Resources, kinds: Sequence[RecordKind]) -> list[Generation]:
    """Create new generations of these kinds and enqueue their jobs. Searches and writes go on meanwhile."""
    model, dimension = await _model_and_dimension(resources)
    return await _create_generations(resources, kinds, model, dimension, always=True)


async def _model_and_dimension(resources: Resources) -> tuple[str | None, int | None]:
    """Return which model embeds records. The endpoint is asked if that is unknown, or if it is paused."""
    embedder, stage = resources.embedder, Purpose.EMBEDDING
    if embedder is None:
        return None, None
    async with resources.postgres.across_tenants() as tx:
        pause = await model_pauses.find(tx, stage, embedder.identity)
    if pause is not None or not embedder.is_known:
        async with model_guard.guard(resources.postgres, resources.settings, stage, embedder.identity):
            await embedder.check()
    return await embedder.name(), await embedder.dimension()


async def _all_kinds_live(resources: Resources) -> bool:
    async with resources.postgres.across_tenants() as tx:
        live = {
            generation.kind
            for generation in await generations.list_generations(tx)
            if generation.state == "live"
        }
    return live == set(SEARCHABLE_KINDS)


async def _create_generations(
    resources: Resources,
    kinds: Sequence[RecordKind],
    model: str | None,
    dimension: int | None,
    *,
    always: bool,
) -> list[Generation]:
    async with resources.postgres.across_tenants() as tx:
        kinds_to_build = [
            kind for kind in kinds if always or await _lacks_generation(tx, kind, model, dimension)
        ]
    if not kinds_to_build:
        return []
    prefix = resources.settings.prefix
    async with resources.postgres.across_tenants(exclusive=True) as tx:
        # Checked again under the lock: another process may have created the same one.
        new_generations = [
            await generations.create(tx, kind, prefix, model, dimension)
            for kind in kinds_to_build
            if always or await _lacks_generation(tx, kind, model, dimension)
        ]
    for generation in new_generations:
        job_count = await backfill(resources, generation.kind, generation.id)
        log.info("generation_begun", collection=generation.collection, model=model, rows=job_count)
    resources.publisher.wake(stages.INDEX, stages.INDEX.batch_size)
    return new_generations


async def _lacks_generation(
    tx: FleetTransaction, kind: RecordKind, model: str | None, dimension: int | None
) -> bool:
    """Return whether neither the live generation nor one being built is for this model."""
    current_generations = [
        generation
        for generation in await generations.list_generations(tx, kind)
        if generation.state != "retiring"
    ]
    return not any(generation.is_embedded_by(model, dimension) for generation in current_generations)


async def promote_ready(resources: Resources) -> list[Generation]:
    """Promote generations that are complete and drop retired ones; return the promoted ones."""
    async with resources.postgres.across_tenants() as tx:
        building_generations = [
            generation
            for generation in await generations.list_generations(tx)
            if generation.state == "building"
        ]
    promoted_generations = [
        generation for generation in building_generations if await _promote_if_complete(resources, generation)
    ]
    if promoted_generations:
        await _set_aliases(resources, promoted_generations)
    for generation in promoted_generations:
        log.info("generation_promoted", collection=generation.collection)
    await _drop_retired(resources)
    return promoted_generations


async def _promote_if_complete(resources: Resources, candidate: Generation) -> bool:
    async with resources.postgres.across_tenants() as tx:
        live = await generations.get_live(tx, candidate.kind)
        if live is not None and await generations.count_missing(tx, candidate, live):
            return False
    if not await collections.exists(resources.qdrant, candidate.collection):
        # Qdrant was unavailable when the generation was created. Without records, none is missing either.
        return False
    async with resources.postgres.across_tenants(exclusive=True) as tx:
        others = [
            generation
            for generation in await generations.list_generations(tx, candidate.kind)
            if generation.id != candidate.id
        ]
        live = next((generation for generation in others if generation.state == "live"), None)
        is_superseded = any(generation.id > candidate.id for generation in others)
        if live is None or is_superseded or await generations.count_missing(tx, candidate, live):
            return False
        await generations.promote(tx, candidate, others)
    return True


async def _drop_retired(resources: Resources) -> None:
    async with resources.postgres.across_tenants() as tx:
        retired_generations = await generations.list_retired(tx, RETIRE_AFTER)
    for generation in retired_generations:
        await collections.drop_collection(resources.qdrant, generation.collection)
        async with resources.postgres.across_tenants() as tx:
            await generations.delete_generation(tx, generation)
        log.info("generation_dropped", collection=generation.collection)


async def create_collections(resources: Resources) -> None:
    """Create the collections that generations lack, as on a new or an emptied Qdrant.

    All records of the kind become due for a new collection. The live generation gets the kind's alias.
    """
    async with resources.postgres.across_tenants() as tx:
        current_generations = [
            generation
            for generation in await generations.list_generations(tx)
            if generation.state != "retiring"
        ]
    existing = await collections.list_names(resources.qdrant)
    for generation in current_generations:
        if generation.collection not in existing and await collections.create_collection(
            resources.qdrant, generation.collection, generation.dimension
        ):
            is_live = generation.state == "live"
            job_count = await backfill(resources, generation.kind, generation.id, is_searched=is_live)
            log.info("collection_created", collection=generation.collection, rows=job_count)
    await _set_aliases(resources, [g for g in current_generations if g.state == "live"])


async def _set_aliases(resources: Resources, live: Sequence[Generation]) -> None:
    prefix = resources.settings.prefix
    aliases = {f"{prefix}_{generation.kind}": generation.collection for generation in live}
    await collections.set_aliases(resources.qdrant, aliases)


async def prepare_index(resources: Resources) -> None:
    """Prepare generations and collections at the start of a process.

    If Qdrant is unavailable, the sweep does it later.
    """
    try:
        await ensure_generations(resources)
        await create_collections(resources)
    except errors.Unavailable as error:
        log.warning("index_not_prepared", reason=str(error))
