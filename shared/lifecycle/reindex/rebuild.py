"""Keep the index's generations in line with the configured model, and rebuild without a pause.

`ensure` is called at every process start and by the sweep: it begins the first generation of
each kind, and a new one beside the live one when the configured model has changed. `reindex`
begins a new one regardless. `advance` promotes what has caught up and drops what has retired.
"""

from collections.abc import Sequence
from datetime import timedelta

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation import errors, stages
from shared.foundation.stages import SEARCHABLE_KINDS, RecordKind
from shared.lifecycle.reindex.backfill import backfill
from shared.platform.resources import Resources
from shared.search.index import collections, generations
from shared.search.index.generations import Generation

# Longer than any reader remembers which generation is live.
RETIRE_AFTER = timedelta(seconds=30)
log = structlog.get_logger()


async def ensure_generations(resources: Resources) -> list[Generation]:
    """Make every kind have a generation for the configured model; return those that were begun.

    An embedding endpoint that is away is asked again next time: until then search goes on with
    the generation that is there.
    """
    try:
        model, dimension = await _model(resources)
    except errors.Unavailable as away:
        log.warning("embedding_endpoint_unavailable", reason=str(away))
        model, dimension = None, None
        if await _all_kinds_live(resources):
            return []
    return await _begin(resources, list(SEARCHABLE_KINDS), model, dimension, always=False)


async def start_reindex(resources: Resources, kinds: Sequence[RecordKind]) -> list[Generation]:
    """Begin to rebuild these kinds from the stores; searches, saves and deletes go on."""
    model, dimension = await _model(resources)
    return await _begin(resources, kinds, model, dimension, always=True)


async def _model(resources: Resources) -> tuple[str | None, int | None]:
    if resources.embedder is None:
        return None, None
    return resources.embedder.model, await resources.embedder.dimension()


async def _all_kinds_live(resources: Resources) -> bool:
    async with resources.postgres.across_tenants() as connection:
        live = {g.kind for g in await generations.list_generations(connection) if g.state == "live"}
    return live == set(SEARCHABLE_KINDS)


async def _begin(
    resources: Resources,
    kinds: Sequence[RecordKind],
    model: str | None,
    dimension: int | None,
    *,
    always: bool,
) -> list[Generation]:
    async with resources.postgres.across_tenants() as connection:
        lacking = [kind for kind in kinds if always or await _lacks(connection, kind, model, dimension)]
    if not lacking:
        return []
    prefix = resources.settings.prefix
    async with resources.postgres.across_tenants(exclusive=True) as connection:
        begun = [
            await generations.create(connection, kind, prefix, model, dimension)
            for kind in lacking
            if always or await _lacks(connection, kind, model, dimension)
        ]
    for generation in begun:
        rows = await backfill(resources, generation.kind, generation.id)
        log.info("generation_begun", collection=generation.collection, model=model, rows=rows)
    resources.publisher.wake(stages.INDEX, stages.INDEX.batch_size)
    return begun


async def _lacks(
    connection: AsyncConnection, kind: RecordKind, model: str | None, dimension: int | None
) -> bool:
    """Tell whether neither the live generation nor one being built holds this model's vectors."""
    current = [g for g in await generations.list_generations(connection, kind) if g.state != "retiring"]
    return not any(g.is_embedded_by(model, dimension) for g in current)


async def promote_ready(resources: Resources) -> list[Generation]:
    """Promote generations that are not behind, drop retired ones; return what was promoted."""
    async with resources.postgres.across_tenants() as connection:
        building = [g for g in await generations.list_generations(connection) if g.state == "building"]
    promoted = [g for g in building if await _promoted(resources, g)]
    for generation in promoted:
        alias = f"{resources.settings.prefix}_{generation.kind}"
        await collections.set_alias(resources.qdrant, alias, generation.collection)
        log.info("generation_promoted", collection=generation.collection)
    await _drop_retired(resources)
    return promoted


async def _promoted(resources: Resources, candidate: Generation) -> bool:
    async with resources.postgres.across_tenants() as connection:
        live = await generations.live(connection, candidate.kind)
        if live is not None and await generations.count_missing(connection, candidate, live):
            return False
    if not await collections.exists(resources.qdrant, candidate.collection):
        return False  # Qdrant was away when it was begun; without a record nothing else would tell
    async with resources.postgres.across_tenants(exclusive=True) as connection:
        others = [
            g for g in await generations.list_generations(connection, candidate.kind) if g.id != candidate.id
        ]
        live = next((g for g in others if g.state == "live"), None)
        newer = any(g.id > candidate.id for g in others)
        if live is None or newer or await generations.count_missing(connection, candidate, live):
            return False
        await generations.promote(connection, candidate, others)
    return True


async def _drop_retired(resources: Resources) -> None:
    async with resources.postgres.across_tenants() as connection:
        gone = await generations.retired(connection, RETIRE_AFTER)
    for generation in gone:
        await collections.drop_collection(resources.qdrant, generation.collection)
        async with resources.postgres.across_tenants() as connection:
            await generations.delete_generation(connection, generation)
        log.info("generation_dropped", collection=generation.collection)


async def create_collections(resources: Resources) -> None:
    """Create the collections that generations lack, as on a fresh or an emptied Qdrant.

    A live one takes the alias of its kind, and everything that it held is made due again.
    """
    async with resources.postgres.across_tenants() as connection:
        known = [g for g in await generations.list_generations(connection) if g.state != "retiring"]
    for generation in known:
        if await collections.create_collection(resources.qdrant, generation.collection, generation.dimension):
            rows = await backfill(resources, generation.kind, generation.id)
            log.info("collection_created", collection=generation.collection, rows=rows)
        if generation.state == "live":
            alias = f"{resources.settings.prefix}_{generation.kind}"
            await collections.set_alias(resources.qdrant, alias, generation.collection)


async def prepare_index(resources: Resources) -> None:
    """Make the index ready, at the start of a process; with Qdrant away the sweep does it later."""
    try:
        await ensure_generations(resources)
        await create_collections(resources)
    except errors.Unavailable as away:
        log.warning("index_not_prepared", reason=str(away))
